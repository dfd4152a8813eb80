// Bench measures ledgerd on this machine: how fast a server records and is read, its live stream,
// webhooks and Conflict Radar, and how it serves hostile clients. It starts servers as processes, so
// it can measure any ledgerd.
//
//	go run ./e2e/bench --help
//
// NOTEBOOK.md has what was measured so far.
package main

import (
	"fmt"
	"io"
	"os"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// The exit statuses.
const (
	exitFailure = 1
	exitUsage   = 2 // wrong flags or arguments
)

// run runs bench with the given arguments, without the name of the program, and returns its exit
// status.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := newProgram(stdin, stdout, stderr)
	root := newRoot(p)
	root.SetArgs(append([]string{}, args...))
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	command, err := root.ExecuteC()
	switch {
	case err == nil:
		return 0
	case p.started:
		fmt.Fprintf(p.stderr, "bench: %v\n", err)
		return exitFailure
	}
	fmt.Fprintf(p.stderr, "bench: %v\nSee '%s --help'.\n", err, command.CommandPath())
	return exitUsage
}
