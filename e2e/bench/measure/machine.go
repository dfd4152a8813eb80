package measure

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/ledgerd/ledgerd/e2e/bench/load"
	"github.com/ledgerd/ledgerd/internal/terminal"
)

// machineSpeed is the speed of the machine, for comparison with the figures.
type machineSpeed struct {
	handler load.Result // of an empty net/http handler in a separate process
	verify  float64     // Ed25519 verifications per second on one core
	fsync   float64     // fsyncs of 4 KiB per second
}

func (b *Core) measureMachine(ctx context.Context) (machineSpeed, error) {
	var m machineSpeed
	process, err := startSelf(ctx, b.Stderr, "empty-handler")
	if err != nil {
		return m, err
	}
	defer process.kill()

	// The body has the size of an attestation.
	request := load.Request(http.MethodPost, "/v1/orgs/bench/repos/repo/attestations", "none", make([]byte, 1600))
	empty := load.Load{Address: process.address, Conns: b.Connections, Requests: [][]byte{request}, Repeat: b.ReadingTime}
	if m.handler, err = empty.Run(); err != nil {
		return m, fmt.Errorf("load the empty handler: %w", err)
	}
	m.verify = verifySpeed()
	m.fsync, err = fsyncSpeed(b.Dir)
	return m, err
}

func verifySpeed() float64 {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		panic(err) // crypto/rand does not fail
	}
	message := make([]byte, 1024)
	signature := ed25519.Sign(private, message)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	n, start := 0, time.Now()
	for time.Since(start) < time.Second {
		ed25519.Verify(public, message, signature)
		n++
	}
	return float64(n) / time.Since(start).Seconds()
}

func fsyncSpeed(dir string) (float64, error) {
	file, err := os.Create(filepath.Join(dir, "fsync"))
	if err != nil {
		return 0, err
	}
	defer file.Close()
	page := make([]byte, 4096)
	n, start := 0, time.Now()
	for time.Since(start) < time.Second {
		if _, err := file.Write(page); err != nil {
			return 0, err
		}
		if err := file.Sync(); err != nil {
			return 0, err
		}
		n++
	}
	return float64(n) / time.Since(start).Seconds(), nil
}

// ServeNothing runs an HTTP server whose handler does nothing, and prints its address.
// bench starts it as a separate process.
func ServeNothing(stdout io.Writer) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "listening on http://%s\n", listener.Addr())
	return http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}))
}

func (b *Core) describeMachine(ctx context.Context) error {
	m, err := b.measureMachine(ctx)
	if err != nil {
		return err
	}
	if b.JSON {
		b.figures = append(b.figures, figure{Workload: "empty net/http handler", Rate: m.handler.Rate()},
			figure{Workload: "Ed25519 verifications on one core", Rate: m.verify},
			figure{Workload: "fsyncs of 4 KiB", Rate: m.fsync})
		return nil
	}
	t := terminal.NewTable(b.Stdout, "MACHINE", "RATE")
	t.Row("empty net/http handler", fmt.Sprintf("%.0f/s at %d connections", m.handler.Rate(), b.Connections))
	t.Row("Ed25519 verifications", fmt.Sprintf("%.0f/s on one core", m.verify))
	t.Row("fsyncs of 4 KiB", fmt.Sprintf("%.0f/s", m.fsync))
	t.Flush()
	fmt.Fprintln(b.Stdout)
	return nil
}
