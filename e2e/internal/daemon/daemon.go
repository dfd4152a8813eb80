// Package daemon starts servers as real processes, for tests.
package daemon

import (
	"bufio"
	"fmt"
	"os/exec"
	"strings"
	"sync"
)

// Start starts a server and waits until it prints its first line, so that it listens. Its
// standard error goes to log.
func Start(server *exec.Cmd, log *Log) error {
	server.Stderr = log
	stdout, err := server.StdoutPipe()
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		status := server.Wait()
		return fmt.Errorf("%s printed %q, and ended with %v\n%s", server.Path, line, status, log)
	}
	return nil
}

// A Log collects the output of a process. It is safe for concurrent use.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// String returns the output so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Reset forgets the output so far.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}
