package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/e2e/bench/measure"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/terminal"
)

// A program is one run of bench.
type program struct {
	stdin          io.Reader
	stdout, stderr *terminal.Screen

	// The values of the flags that every benchmark has.
	ledgerd, database, dir, output string

	// started is whether a benchmark has started: an error before that is a usage error.
	started bool
}

func newProgram(stdin io.Reader, stdout, stderr io.Writer) *program {
	return &program{stdin: stdin, stdout: terminal.NewScreen(stdout), stderr: terminal.NewScreen(stderr)}
}

// addFlags defines the flags that every benchmark has.
func (p *program) addFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&p.ledgerd, "ledgerd", "", "`program` to measure (default: build that of this checkout)")
	flags.StringVar(&p.database, "database", "",
		"postgres:// `URL` of a database to measure with, in a temporary schema (default: a temporary file)")
	flags.StringVar(&p.dir, "dir", "", "`folder` for temporary files (default: the system's temporary folder)")
	flagvalue.ChoiceVar(root, flags, &p.output, "output", "o", "output format", "table", "json")
}

// A benchmark checks its options and then measures.
type benchmark interface {
	Check() error
	Measure(context.Context, measure.Env) error
}

// runs returns the RunE function of a benchmark's command.
func (p *program) runs(b benchmark) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, _ []string) error {
		if err := b.Check(); err != nil {
			return err
		}
		if err := p.checkDatabase(); err != nil {
			return err
		}
		ledgerd, err := named(p.ledgerd)
		if err != nil {
			return err
		}
		p.started = true

		ctx, release := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
		defer release()
		err = p.run(ctx, b, ledgerd)
		if err != nil && ctx.Err() != nil {
			return errors.New("interrupted")
		}
		return err
	}
}

// checkDatabase returns an error if the database to measure with is a file.
func (p *program) checkDatabase() error {
	if p.database == "" || strings.HasPrefix(p.database, "postgres://") || strings.HasPrefix(p.database, "postgresql://") {
		return nil
	}
	return errors.New("--database takes only a postgres:// URL: without it, bench uses a temporary file")
}

// run runs a benchmark of a program. If its path is empty, run builds it.
func (p *program) run(ctx context.Context, b benchmark, ledgerd string) error {
	if ledgerd == "" {
		dir, err := os.MkdirTemp("", "ledgerd-bench-build-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if ledgerd, err = build(ctx, dir, p.stderr); err != nil {
			return err
		}
	}
	return b.Measure(ctx, measure.Env{Stdout: p.stdout, Stderr: p.stderr, JSON: p.output == "json", Database: p.database,
		Dir: p.dir, Program: ledgerd})
}
