package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity/sigstore"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
	"github.com/ledgerd/ledgerd/store/storetest/conformance"
	"github.com/ledgerd/ledgerd/store/storetest/record"
)

// A sqliteFile is the path of a SQLite database.
type sqliteFile string

func newSQLite(t testing.TB) storetest.Database { return newLocated(t) }

func newLocated(t testing.TB) storetest.Located { return sqliteFile(storetest.NewFile(t)) }

func (f sqliteFile) Name() string { return string(f) }

func (f sqliteFile) Open(t testing.TB, o store.Options) *store.Store {
	t.Helper()
	o.ParseRoot = sigstore.ParseRoot
	return must.Get(store.Open(context.Background(), string(f), o))(t)
}

func (f sqliteFile) Exec(t testing.TB, script string) {
	t.Helper()
	db := must.Get(sql.Open("sqlite", "file:"+string(f)+"?_pragma=busy_timeout(60000)"))(t)
	defer db.Close()
	must.Get(db.Exec(script))(t)
}

func TestOnSQLite(t *testing.T) { conformance.Run(t, storetest.Checked(newLocated)) }

func BenchmarkRecord(b *testing.B)           { record.BenchmarkRecord(b, newSQLite) }
func BenchmarkRegisterInFlight(b *testing.B) { record.BenchmarkRegisterInFlight(b, newSQLite) }
func BenchmarkMainlineMoves(b *testing.B)    { record.BenchmarkMainlineMoves(b, newSQLite) }
func BenchmarkGateOfADelivery(b *testing.B)  { record.BenchmarkGateOfADelivery(b, newSQLite) }
func BenchmarkRecordOneOfManyWithATree(b *testing.B) {
	record.BenchmarkRecordOneOfManyWithATree(b, newSQLite)
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
