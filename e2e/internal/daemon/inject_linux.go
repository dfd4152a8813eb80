package daemon

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// Inject makes system calls of a process fail until stop is called. The fault is that of
// strace's option -e inject. It returns an error if strace is missing, or may not attach.
func Inject(pid int, fault string) (stop func() error, err error) {
	calls, _, _ := strings.Cut(fault, ":")
	tracer := exec.Command("strace", "-f", "-p", fmt.Sprint(pid),
		"-e", "trace="+calls, "-e", "inject="+fault, "-o", os.DevNull)
	stderr, err := tracer.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := tracer.Start(); err != nil {
		return nil, err
	}

	line, err := bufio.NewReader(stderr).ReadString('\n')
	if !strings.Contains(line, "attached") {
		return nil, fmt.Errorf("strace cannot attach: %q, %v, %w", line, err, tracer.Wait())
	}
	return func() error {
		if err := tracer.Process.Signal(syscall.SIGINT); err != nil { // it detaches
			return err
		}
		_ = tracer.Wait() // it ends with the signal
		return nil
	}, nil
}
