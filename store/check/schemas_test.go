package check_test

import (
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/check"
)

// TestDatabasesOfEarlierSchemas opens the databases that testdata/make-schemas.sh has made with
// the release of each schema, which migrates them, and checks what is in them.
func TestDatabasesOfEarlierSchemas(t *testing.T) {
	files := must.Get(filepath.Glob("../testdata/schemas/v*.db.gz"))(t)
	if len(files) < 16 {
		t.Fatalf("found %d databases, want 16 or more", len(files))
	}

	for _, file := range append(files, "../testdata/v5.db.gz") {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".db.gz"), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.db")
			unpack(t, file, path)
			s := must.Get(store.Open(t.Context(), path, store.Options{}))(t)
			report, err := check.Run(t.Context(), path, check.Options{})
			must.OK(t, err)
			// The releases before schema 21 had nothing of what is logged now.
			hasLogs := slices.Contains([]string{"v21.db.gz", "v22.db.gz", "v23.db.gz"}, filepath.Base(file))
			if report.Complete != hasLogs {
				t.Errorf("before the logs are built: %+v, want complete %t", report, hasLogs)
			}
			must.OK(t, s.BuildLogsOnce(t.Context()))
			must.OK(t, s.Settle(t.Context()))
			wantStates(t, s)
			must.OK(t, s.Close())

			report, err = check.Run(t.Context(), path, check.Options{})
			must.OK(t, err)
			if !report.Complete {
				t.Errorf("not checked: %q", report.Unchecked)
			}
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
	must.OK(t, err)
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
	packed := must.Get(os.Open(file))(t)
	defer packed.Close()
	unpacked := must.Get(gzip.NewReader(packed))(t)
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	must.OK(t, err)
	_, err = io.Copy(out, unpacked)
	must.OK(t, errors.Join(err, out.Close()))
}
