// Package measure measures a server on this machine: recording and reading, the live
// stream, webhooks, Conflict Radar, and recording while hostile clients are connected.
package measure

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"github.com/ledgerd/ledgerd/e2e/bench/load"
	"github.com/ledgerd/ledgerd/internal/terminal"
)

// An Env is the environment of a benchmark.
type Env struct {
	Stdout, Stderr io.Writer
	JSON           bool // print only the figures, as JSON
	// Database is the URL of a database on a PostgreSQL server, in which the benchmark creates a
	// schema, and drops it at the end. If it is empty, the benchmark uses a temporary file.
	Database string
	// Dir is the folder for temporary files. If empty, it is the system's.
	Dir string
	// Program is the absolute path of the ledgerd that is measured.
	Program string
}

// A Core is a run of bench, which measures recording and reading attestations. The
// other benchmarks embed it.
type Core struct {
	Env

	Attestations, Connections, Readers int
	Commits, PerCommit                 int // see commitOf
	ReadingTime                        time.Duration
	images                             bool // whether the first attestation of a commit names an image

	database   string
	serveFlags []string // additional flags of ledgerd serve
	server     *process
	token      string
	signers    []signer
	recorded   int   // attestations so far
	figures    []any // of benchmarks that support JSON: a figure each, or a crowdFigures
}

// A figure is the result of a workload, as -o json prints it.
type figure struct {
	Workload string  `json:"workload"`
	Rate     float64 `json:"per_second,omitzero"`
	P50      float64 `json:"p50_ms,omitzero"`
	P99      float64 `json:"p99_ms,omitzero"`
	// Ratio compares the workload with its baseline.
	Ratio float64 `json:"ratio,omitzero"`
}

// withTempDir prints the version and machine, and runs f with a temporary folder as
// b.Dir.
func (b *Core) withTempDir(ctx context.Context, f func() error) (err error) {
	dir, err := os.MkdirTemp(b.Dir, "ledgerd-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b.Dir, b.database = dir, filepath.Join(dir, "ledger.db")
	if b.Database != "" {
		s, database, err := withSchema(ctx, b.Database)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.drop()) }()
		b.database = database
		b.serveFlags = append(b.serveFlags, "--log-key-dir", filepath.Join(dir, "keys"))
	}

	version, err := b.version(ctx)
	if err != nil {
		return err
	}
	b.print("ledgerd %s, %s/%s, %d cores\n", version, runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	return f()
}

// version returns the version of the program.
func (b *Core) version(ctx context.Context) (string, error) {
	text, err := b.ledgerd(ctx, "version", "-o", "json")
	if err != nil {
		return "", err
	}
	var record struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		return "", fmt.Errorf("read the output of ledgerd version: %w", err)
	}
	return record.Version, nil
}

// withServer starts a server and runs the workloads in order.
func (b *Core) withServer(ctx context.Context, workloads ...func(context.Context) error) error {
	if err := b.startServer(ctx); err != nil {
		return err
	}
	defer func() { b.server.kill() }() // workloads may have replaced it
	for _, workload := range workloads {
		if err := workload(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ledgerd runs a command of the program on the benchmark's database and returns its output.
func (b *Core) ledgerd(ctx context.Context, args ...string) (string, error) {
	var stderr strings.Builder
	command := exec.CommandContext(ctx, b.Program, append(args, "--database", b.database)...)
	command.Stderr = &stderr
	stdout, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("ledgerd %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(stdout)), nil
}

func (b *Core) startServer(ctx context.Context) (err error) {
	args := []string{"serve", "--listen", "127.0.0.1:0", "--database", b.database, "--log-level", "warn"}
	b.server, err = startProcess(ctx, b.Program, b.Stderr, append(args, b.serveFlags...)...)
	return err
}

// print prints a line, except with -o json.
func (b *Core) print(format string, values ...any) {
	if !b.JSON {
		fmt.Fprintf(b.Stdout, format+"\n", values...)
	}
}

// printFigures prints all figures as JSON, with -o json.
func (b *Core) printFigures() error {
	if !b.JSON {
		return nil
	}
	return terminal.WriteJSON(b.Stdout, b.figures)
}

// figure adds the figure of a workload and prints it.
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
	b.print("%s", line)
}

func latencyFigure(workload string, result load.Result) figure {
	return figure{Workload: workload, P50: load.MS(result.Percentile(0.50)), P99: load.MS(result.Percentile(0.99))}
}

func rateFigure(workload string, result load.Result) figure {
	f := latencyFigure(workload, result)
	f.Rate = result.Rate()
	return f
}

// A signer signs the benchmark's statements.
type signer struct {
	key       ed25519.PrivateKey
	predicate string
}

// A schema is a temporary schema of a database on a PostgreSQL server.
type schema struct {
	conn *pgx.Conn
	name string
}

// withSchema creates a schema in the database at a URL, and returns the URL with which a server
// uses it. Drop drops it.
func withSchema(ctx context.Context, database string) (_ *schema, inSchema string, err error) {
	u, err := url.Parse(database)
	if err != nil {
		return nil, "", errors.New("the URL of the database is not valid")
	}
	s := &schema{name: fmt.Sprintf("ledgerd_bench_%d", time.Now().UnixNano())}
	if s.conn, err = pgx.Connect(ctx, database); err != nil {
		return nil, "", fmt.Errorf("connect to the database: %w", err)
	}
	_, err = s.conn.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS citext; CREATE SCHEMA "+s.name)
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("create a schema for the benchmark: %w", err), s.conn.Close(ctx))
	}

	query := u.Query()
	query.Set("search_path", s.name+",public")
	u.RawQuery = query.Encode()
	return s, u.String(), nil
}

// drop drops the schema with all that is in it.
func (s *schema) drop() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := s.conn.Exec(ctx, "DROP SCHEMA "+s.name+" CASCADE")
	return errors.Join(err, s.conn.Close(ctx))
}
