package measure

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// A crowdProcess is another process of this program, which runs the clients of a crowd.
type crowdProcess struct {
	command *exec.Cmd
	stdin   io.WriteCloser
	stdout  *bufio.Reader
}

// startCrowd starts the clients and waits until they are connected.
func startCrowd(ctx context.Context, stderr io.Writer, clients crowdClients) (*crowdProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &crowdProcess{command: exec.CommandContext(ctx, self, "crowd", "clients")}
	p.command.Stderr = stderr
	if p.stdin, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("start the crowd: %w", err)
	}

	p.stdout = bufio.NewReader(stdout)
	description, err := json.Marshal(clients)
	if err == nil {
		_, err = p.stdin.Write(append(description, '\n'))
	}
	if err == nil {
		_, err = p.stdout.ReadString('\n') // crowdReady
	}
	if err != nil {
		p.kill()
		return nil, fmt.Errorf("the crowd failed: %w", err)
	}
	return p, nil
}

// end ends the crowd and returns what it has seen. events is the number that each stream
// must have got, or -1 if it is not known.
func (p *crowdProcess) end(events int) (r crowdReport, err error) {
	defer p.kill()
	if _, err := fmt.Fprintln(p.stdin, events); err != nil {
		return r, fmt.Errorf("end the crowd: %w", err)
	}
	if err := json.UnmarshalRead(p.stdout, &r); err != nil {
		return r, fmt.Errorf("read the report of the crowd: %w", err)
	}
	return r, nil
}

// kill ends the process. It may be called again.
func (p *crowdProcess) kill() {
	_ = p.command.Process.Kill()
	_ = p.command.Wait()
}

// cpuTime returns the CPU time that a process has used, or 0 if the system does not
// report it.
func cpuTime(pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The fields after the name, which ends with the last parenthesis: utime and stime are
	// the 12th and 13th, in hundredths of a second.
	_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}
