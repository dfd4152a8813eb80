// Package daemon starts servers as real processes, for tests.
package daemon

import (
	"bufio"
	"fmt"
	"os/exec"

	"github.com/ledgerd/ledgerd/internal/testenv"
)

// Start starts a server and waits until it prints its first line, so that it listens. Its
// standard error goes to log.
func Start(server *exec.Cmd, log *testenv.Buffer) error {
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
