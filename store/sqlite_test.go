package store_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity/sigstore"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/check"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// A sqliteFile is the path of a SQLite database.
type sqliteFile string

func newSQLite(t testing.TB) storetest.Database {
	path := storetest.NewFile(t)
	if testenv.Pick(0, 1, 1) > 0 {
		t.Cleanup(func() { checkSettings(t, path) })
	}
	return sqliteFile(path)
}

// checkSettings checks that audit events say who has access, and the settings, whatever a test has done.
func checkSettings(t testing.TB, path string) {
	t.Helper()
	report, err := check.Run(context.Background(), path, check.Options{ParseRoot: sigstore.ParseRoot})
	if err != nil {
		t.Logf("%s is not checked: %v", path, err) // a test may have left no database
	}
	for _, problem := range report.Problems {
		if problem.Check == "settings" {
			t.Error(problem)
		}
	}
}

func (f sqliteFile) Open(t testing.TB, o store.Options) *store.Store {
	t.Helper()
	o.ParseRoot = sigstore.ParseRoot
	return must.Get(store.Open(context.Background(), string(f), o))(t)
}

func TestOnSQLite(t *testing.T) { storetest.Run(t, newCheckedSQLite) }

// A checkedFile is a database that is checked at the end of its test.
type checkedFile struct {
	sqliteFile
	now func() time.Time // of the last store
}

func (f *checkedFile) Open(t testing.TB, o store.Options) *store.Store {
	f.now = o.Now
	return f.sqliteFile.Open(t, o)
}

func newCheckedSQLite(t testing.TB) storetest.Database {
	file := &checkedFile{sqliteFile: newSQLite(t).(sqliteFile)}
	t.Cleanup(func() {
		report, err := check.Run(context.Background(), string(file.sqliteFile),
			check.Options{ParseRoot: sigstore.ParseRoot, Now: file.now})
		must.OK(t, err)
		// Some tests record what was never signed.
		isMade := slices.ContainsFunc(report.Problems, func(p check.Problem) bool {
			return p.Check == "signature" || p.Check == "assertion" || strings.Contains(p.Problem, ", and the statement ") ||
				strings.Contains(p.Problem, " finished at ")
		})
		for _, p := range report.Problems {
			if !isMade || !slices.Contains([]string{"signature", "assertion", "attestation", "exception"}, p.Check) {
				t.Errorf("problem: %s", p)
			}
		}
	})
	return file
}

func BenchmarkRecord(b *testing.B) { storetest.BenchmarkRecord(b, newSQLite) }
func BenchmarkRecordOneOfManyWithATree(b *testing.B) {
	storetest.BenchmarkRecordOneOfManyWithATree(b, newSQLite)
}

// TestSizePerRegistrationInCrowdedDirectory registers 2,000 commits that each change a file
// in the same directory. It measures how much the database grows after the first 400.
func TestSizePerRegistrationInCrowdedDirectory(t *testing.T) {
	testenv.From(t, testenv.Full, "takes seconds")
	t.Parallel()
	file := newSQLite(t).(sqliteFile)
	s := file.Open(t, store.Options{})
	defer s.Close()
	if _, err := s.CreateOrg(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: "api"}, "host"); err != nil {
		t.Fatal(err)
	}

	const tips, few, workers = 2000, 400, 8
	register := func(from, to int) {
		var wg sync.WaitGroup
		for worker := range workers {
			wg.Go(func() {
				for i := from + worker; i < to; i += workers {
					_, _, err := s.Register(t.Context(), "acme", "api", fmt.Sprintf("%040x", i+1), ledger.Registration{
						Branch: fmt.Sprint("branch", i),
						Author: ledger.Author{Name: "Ann", Email: fmt.Sprintf("branch%d@example.org", i)},
						Changes: []radar.Change{{
							Path: fmt.Sprintf("crowd/f%d.go", i), Status: "M", OldMode: "100644", Mode: "100644",
							OldBlob: fmt.Sprintf("%040x", i), Blob: fmt.Sprintf("%040x", tips+i),
							Hunks: []radar.Hunk{{
								Start: 1, Lines: 1, Added: 1, Text: "e100000000000001",
								Near: []string{"aa00000000000000", "aa00000000000001"}, Far: []string{"bb00000000000000", "bb00000000000001"},
							}},
						}},
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	}

	register(0, few)
	before := file.size(t)
	register(few, tips)
	each := (file.size(t) - before) / (tips - few)
	t.Logf("%d bytes per registration, %d bytes in total", each, file.size(t))
	if each > 40<<10 {
		t.Errorf("%d bytes per registration, want at most 40 KiB", each)
	}
}

// size returns the size of the database in bytes, including its write-ahead log.
func (f sqliteFile) size(t *testing.T) (n int64) {
	t.Helper()
	for _, suffix := range []string{"", "-wal"} {
		info := must.Get(os.Stat(string(f) + suffix))(t)
		n += info.Size()
	}
	return n
}
