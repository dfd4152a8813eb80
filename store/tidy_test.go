package store

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
)

func TestTidyTellsWhatItCouldNotDo(t *testing.T) {
	var log bytes.Buffer
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s.tidy(t.Context())
	for _, want := range []string{"pruning the log of webhook deliveries", "pruning what tips of branches overlapped with", "pruning sessions"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log is %q, want %q in it", log.String(), want)
		}
	}
}
