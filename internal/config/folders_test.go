package config

import (
	"strings"
	"testing"
)

func TestFoldersOfTheLogs(t *testing.T) {
	for _, test := range []struct{ keys, state, wantKeys, wantState string }{
		{"", "", "a.db-keys", "a.db-keys"},
		{"keys", "", "keys", "keys"},
		{"", "state", "a.db-keys", "state"},
		{"keys", "state", "keys", "state"},
	} {
		s := Default()
		s.Database, s.Log.KeyDir, s.Log.StateDir = "a.db", test.keys, test.state
		if s.KeyDir() != test.wantKeys || s.StateDir() != test.wantState {
			t.Errorf("%+v: got %s and %s", test, s.KeyDir(), s.StateDir())
		}
	}
}

// Servers with one database need the same keys, so they do not choose a folder by themselves.
func TestKeysWithPostgreSQL(t *testing.T) {
	s := Default()
	s.Database = "postgres://db.example/ledger"
	if err := s.CheckForServer(); err == nil || !strings.Contains(err.Error(), "log.key_dir is not set") ||
		!strings.Contains(err.Error(), "ledgerd log new-seed") {
		t.Errorf("without a folder: %v", err)
	}
	s.Log.KeyDir = "keys"
	if err := s.CheckForServer(); err != nil {
		t.Errorf("with a folder: %v", err)
	}
}
