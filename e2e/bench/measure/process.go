package measure

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

// A process is a server on a free port: the program that is measured, or one of this program.
type process struct {
	command *exec.Cmd
	address string // host:port
}

// startSelf starts this program with the arguments, and waits until it prints its address.
func startSelf(ctx context.Context, stderr io.Writer, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return startProcess(ctx, self, stderr, args...)
}

// startProcess starts a program with the arguments, and waits until it prints its address.
func startProcess(ctx context.Context, program string, stderr io.Writer, args ...string) (*process, error) {
	command := exec.CommandContext(ctx, program, args...)
	command.Stderr = stderr
	command.Env = append(os.Environ(), "LEDGERD_LIMITS_REQUESTS=0") // it measures what the server can do
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", args[0], err)
	}

	p := &process{command: command}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if _, address, ok := strings.Cut(lines.Text(), "http://"); ok {
			p.address, _, _ = strings.Cut(strings.Fields(address)[0], "/")
			go io.Copy(io.Discard, stdout) // ends with the process
			return p, nil
		}
	}
	p.kill()
	return nil, fmt.Errorf("%s exited before it listened", args[0])
}

func (p *process) kill() {
	_ = p.command.Process.Kill()
	_ = p.command.Wait()
}

// stop interrupts the process and waits until it exits. Windows cannot interrupt
// other processes, so there it is killed.
func (p *process) stop() error {
	if runtime.GOOS == "windows" {
		p.kill()
		return nil
	}
	if err := p.command.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	return p.command.Wait()
}

// residentMemory returns the resident memory of the process in bytes, or false if the
// system does not report it.
func (p *process) residentMemory() (int64, bool) { return p.memory("VmRSS") }

// peakMemory is the maximum of residentMemory so far.
func (p *process) peakMemory() (int64, bool) { return p.memory("VmHWM") }

// memory returns a field of /proc/PID/status in bytes.
func (p *process) memory(field string) (int64, bool) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kib << 10, err == nil
		}
	}
	return 0, false
}
