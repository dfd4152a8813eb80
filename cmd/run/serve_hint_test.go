package run

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/service"
)

// A signal that arrives while serve looks at the database is not an error.
func TestHintIgnoresASignal(t *testing.T) {
	s := config.Default()
	s.Listen, s.Database = "127.0.0.1:0", config.Database(filepath.Join(t.TempDir(), "ledger.db"))
	running, err := service.Start(t.Context(), s, &service.Log{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer running.Stop(0, s.ShutdownTimeout)

	stopped, stop := context.WithCancel(t.Context())
	stop()
	var stderr bytes.Buffer
	p := cli.New(nil, new(bytes.Buffer), &stderr)
	if err := printHint(stopped, p, running, s); err != nil {
		t.Errorf("printHint: %v", err)
	}
	if !strings.Contains(stderr.String(), "The ledger is empty") {
		t.Errorf("printed %q, want the hint for an empty ledger", stderr.String())
	}
}
