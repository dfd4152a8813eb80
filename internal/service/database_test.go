package service

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
)

// A database that was being created when the power failed is one, but no other file
// without SQLite's header, whatever is next to it.
func TestUnfinishedDatabase(t *testing.T) {
	zeros := strings.Repeat("\x00", 4096)
	for _, test := range []struct {
		name, database, journal string
		ok                      bool
	}{
		{"only its size is on disk", zeros, journalMagic + "…", true},
		{"no journal", zeros, "", false},
		{"another journal", zeros, "2026-11-22: a good day", false},
		{"a short journal", zeros, journalMagic[:7], false},
		{"a text next to a journal", "a text of 20 bytes..", journalMagic + "…", false},
		{"a short text next to a journal", "a text", journalMagic + "…", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.db")
			must.OK(t, os.WriteFile(path, []byte(test.database), 0o600))
			if test.journal != "" {
				must.OK(t, os.WriteFile(path+"-journal", []byte(test.journal), 0o600))
			}
			if err := CheckDatabase(path); (err == nil) != test.ok {
				t.Errorf("got %v, want ok: %v", err, test.ok)
			}
		})
	}
}
