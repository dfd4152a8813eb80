// Package bench measures a server on this machine: how fast it records and reads, what
// listeners and webhooks cost, and the Conflict Radar.
package bench

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/internal/buildinfo"
	"github.com/ledgerd/ledgerd/internal/terminal"
)

// An Env is where benchmarks run and what they print to.
type Env struct {
	Stdout, Stderr io.Writer
	JSON           bool // figures are printed as JSON, and nothing else is
	// Command runs one of the program's own commands and returns its exit status.
	Command func(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int
}

// A Core measures recording and reading attestations. The other benchmarks
// build on it.
type Core struct {
	Env

	Attestations, Connections, Readers int
	Commits, PerCommit                 int // see commitOf
	ReadingTime                        time.Duration

	// Dir is the folder for temporary files; the system's if empty.
	Dir        string
	database   string
	serveFlags []string // of its servers, beside the usual ones
	server     *process
	token      string
	signers    []signer
	recorded   int
	figures    []figure // of those that print JSON too
}

// A figure is what -o json prints of a workload.
type figure struct {
	Workload string  `json:"workload"`
	Rate     float64 `json:"per_second,omitzero"`
	P50      float64 `json:"p50_ms,omitzero"`
	P99      float64 `json:"p99_ms,omitzero"`
	// Ratio is to the same without what the workload is about.
	Ratio float64 `json:"ratio,omitzero"`
}

// within says what is measured and on what, and gives the run a temporary
// folder while f runs.
func (b *Core) within(f func() error) error {
	dir, err := os.MkdirTemp(b.Dir, "ledgerd-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b.Dir, b.database = dir, filepath.Join(dir, "ledger.db")
	b.say("ledgerd %s, %s/%s, %d cores\n", buildinfo.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	return f()
}

// serving runs the workloads on a server, one after the other.
func (b *Core) serving(ctx context.Context, workloads ...func(context.Context) error) error {
	if err := b.startServer(ctx); err != nil {
		return err
	}
	defer func() { b.server.kill() }() // not always the one that began
	for _, workload := range workloads {
		if err := workload(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ledgerd runs one of the program's own commands on the benchmark's database
// and returns what it printed.
func (b *Core) ledgerd(ctx context.Context, args ...string) (string, error) {
	var out, problem strings.Builder
	args = append(args, "--database", b.database)
	if status := b.Command(ctx, args, strings.NewReader(""), &out, &problem); status != 0 {
		return "", fmt.Errorf("ledgerd %s: exit status %d: %s", strings.Join(args, " "), status, problem.String())
	}
	return strings.TrimSpace(out.String()), nil
}

func (b *Core) startServer(ctx context.Context) (err error) {
	args := []string{"serve", "--listen", "127.0.0.1:0", "--database", b.database, "--log-level", "warn"}
	b.server, err = startProcess(ctx, b.Stderr, append(args, b.serveFlags...)...)
	return err
}

// report prints a workload's line as soon as it is known.
func (b *Core) report(workload string, o loadResult) {
	fmt.Fprintf(b.Stdout, "%-58s %8.0f/s  p50 %6.2f ms  p99 %6.2f ms\n", workload, o.rate(), ms(o.percentile(0.50)),
		ms(o.percentile(0.99)))
}

// say prints a line for people.
func (b *Core) say(format string, values ...any) {
	if !b.JSON {
		fmt.Fprintf(b.Stdout, format+"\n", values...)
	}
}

// printFigures prints all figures if they are wanted as JSON.
func (b *Core) printFigures() error {
	if !b.JSON {
		return nil
	}
	return terminal.WriteJSON(b.Stdout, b.figures)
}

// figure keeps the figure of a workload and prints it at once.
func (b *Core) figure(f figure) {
	b.figures = append(b.figures, f)
	line := fmt.Sprintf("%-58s", f.Workload)
	if f.Rate != 0 {
		line += fmt.Sprintf(" %8.0f/s", f.Rate)
	}
	if f.P99 != 0 {
		line += fmt.Sprintf("  p50 %6.2f ms  p99 %6.2f ms", f.P50, f.P99)
	}
	if f.Ratio != 0 {
		line += fmt.Sprintf("  ratio %.2f", f.Ratio)
	}
	b.say("%s", line)
}

func latencyFigure(what string, o loadResult) figure {
	return figure{Workload: what, P50: ms(o.percentile(0.50)), P99: ms(o.percentile(0.99))}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// A signer signs the benchmark's statements.
type signer struct {
	key       ed25519.PrivateKey
	predicate string
}
