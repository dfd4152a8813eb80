package cmd

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"
)

// The machine's own speed, against which the figures are read as ratios.
type machineSpeed struct {
	handler loadResult // an empty net/http handler in a process of its own
	verify  float64    // Ed25519 verifications a second on one core
	fsync   float64    // fsyncs of 4 KiB a second
}

// newEmptyHandler returns the hidden command that bench starts beside the
// server: an HTTP server that does nothing.
func newEmptyHandler(p *program) *cobra.Command {
	return &cobra.Command{
		Use:    "empty-handler",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			fmt.Fprintf(p.stdout, "listening on http://%s\n", listener.Addr())
			return http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusNoContent)
			}))
		},
	}
}

func (b *benchRun) measureMachine(ctx context.Context) (machineSpeed, error) {
	var m machineSpeed
	process, err := startProcess(ctx, b.p.stderr, "bench", "empty-handler")
	if err != nil {
		return m, err
	}
	defer process.kill()
	// Of the size that the attest workload posts.
	request := httpRequest(http.MethodPost, "/v1/orgs/bench/repos/repo/attestations", "none", make([]byte, 1600))
	empty := load{address: process.address, conns: b.conns, requests: [][]byte{request}, repeat: b.seconds}
	if m.handler, err = empty.run(); err != nil {
		return m, fmt.Errorf("load the empty handler: %w", err)
	}
	m.verify = verifySpeed()
	m.fsync, err = fsyncSpeed(b.dir)
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
