package cmd

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
)

// A writerFunc is an io.Writer.
type writerFunc func(text []byte)

func (f writerFunc) Write(text []byte) (int, error) {
	f(text)
	return len(text), nil
}

// A signal that arrives while serve looks at the database is not an error.
func TestHintIgnoresASignal(t *testing.T) {
	folder := t.TempDir()
	stderr := must.Get(os.Create(filepath.Join(folder, "stderr")))(t)
	defer stderr.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	listening := writerFunc(func([]byte) { stop() }) // before serve looks for orgs

	status := Main(ctx, []string{"serve", "--listen", "127.0.0.1:0", "--shutdown-delay", "0s",
		"--database", filepath.Join(folder, "ledger.db")}, strings.NewReader(""), listening, stderr)
	text := must.Read(t, stderr.Name())
	if status != 0 || !strings.Contains(string(text), "The ledger is empty") {
		t.Errorf("status %d, and printed %q; want 0, and the hint for an empty ledger", status, text)
	}
}
