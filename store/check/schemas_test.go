package check_test

import (
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/check"
)

// TestDatabasesOfEarlierSchemas opens the databases that testdata/make-schemas.sh has made with
// the release of each schema, which migrates them, and checks what is in them.
func TestDatabasesOfEarlierSchemas(t *testing.T) {
	files, err := filepath.Glob("../testdata/schemas/v*.db.gz")
	ok(t, err)
	if len(files) < 8 {
		t.Fatalf("found %d databases, want 8 or more", len(files))
	}

	for _, file := range append(files, "../testdata/v5.db.gz") {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".db.gz"), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.db")
			unpack(t, file, path)
			s, err := store.Open(t.Context(), path, store.Options{})
			ok(t, err)
			ok(t, s.BuildLogsOnce(t.Context()))
			ok(t, s.Settle(t.Context()))
			wantStates(t, s)
			ok(t, s.Close())

			report, err := check.Run(t.Context(), path, check.Options{})
			ok(t, err)
			for _, problem := range report.Problems {
				t.Error(problem)
			}
			if report.Attestations < 7 || report.Commits < 3 {
				t.Errorf("checked %d attestations and %d commits, want 7 and 3 or more", report.Attestations, report.Commits)
			}
		})
	}
}

// wantStates checks that a commit of acme/api is deployed, and that others are not.
func wantStates(t *testing.T, s *store.Store) {
	t.Helper()
	states := make(map[ledger.State]int)
	filter := store.CommitFilter{}
	filter.Limit = 100
	commits, err := s.Commits(t.Context(), "acme", "api", filter)
	ok(t, err)
	for _, commit := range commits.Data {
		states[commit.State]++
	}
	if states[ledger.Deployed] == 0 || states[ledger.Deployed] == len(commits.Data) {
		t.Errorf("the commits have the states %v, want some that are deployed", states)
	}
}

// unpack writes what a compressed file contains to a path.
func unpack(t *testing.T, file, path string) {
	t.Helper()
	packed, err := os.Open(file)
	ok(t, err)
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	ok(t, err)
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	ok(t, err)
	_, err = io.Copy(out, unpacked)
	ok(t, errors.Join(err, out.Close()))
}
