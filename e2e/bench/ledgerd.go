package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// named returns the absolute path of a program, or "" if it has no name.
func named(program string) (path string, err error) {
	if program == "" {
		return "", nil
	}
	if path, err = exec.LookPath(program); err != nil {
		return "", fmt.Errorf("invalid --ledgerd: %w", err)
	}
	return filepath.Abs(path)
}

// build builds the ledgerd of the checkout around the working directory, in the folder dir and without
// cgo, like releases. It returns the path of the program.
func build(ctx context.Context, dir string, stderr io.Writer) (path string, err error) {
	path = filepath.Join(dir, "ledgerd")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	fmt.Fprintln(stderr, "building ledgerd")
	command := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/ledgerd/ledgerd")
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOTMPDIR="+dir)
	command.Stderr = stderr
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) } // go ends what it has started
	command.WaitDelay = 10 * time.Second
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("build ledgerd: %w: run bench in a checkout of ledgerd, or name a program with --ledgerd", err)
	}
	return path, nil
}
