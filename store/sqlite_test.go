package store_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// sqliteFile is a database in the SQLite file of that path.
type sqliteFile string

func newSQLite(t testing.TB) storetest.Database {
	return sqliteFile(filepath.Join(t.TempDir(), "ledger.db"))
}

func (f sqliteFile) Open(t testing.TB, o store.Options) *store.Store {
	t.Helper()
	s, err := store.Open(context.Background(), string(f), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestOnSQLite(t *testing.T) { storetest.Run(t, newSQLite) }

func BenchmarkRecord(b *testing.B)             { storetest.BenchmarkRecord(b, newSQLite) }
func BenchmarkRecordWithWebhooks(b *testing.B) { storetest.BenchmarkRecordWithWebhooks(b, newSQLite) }
func BenchmarkCommit(b *testing.B)             { storetest.BenchmarkCommit(b, newSQLite) }
func BenchmarkAttestations(b *testing.B)       { storetest.BenchmarkAttestations(b, newSQLite) }
func BenchmarkOutbox(b *testing.B)             { storetest.BenchmarkOutbox(b, newSQLite) }
func BenchmarkRegister(b *testing.B)           { storetest.BenchmarkRegister(b, newSQLite) }

// TestAPushIntoACrowdedDirectoryTakesLittleRoom registers 2,000 commits of one
// file each in one directory and measures the file after the first 400.
func TestAPushIntoACrowdedDirectoryTakesLittleRoom(t *testing.T) {
	file := newSQLite(t).(sqliteFile)
	s := file.Open(t, store.Options{})
	defer s.Close()
	if _, err := s.CreateOrg(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: "api"}, "host"); err != nil {
		t.Fatal(err)
	}
	const tips, few, lanes = 2000, 400, 8
	crowd := func(from, to int) {
		var filling sync.WaitGroup
		for lane := range lanes {
			filling.Go(func() {
				for i := from + lane; i < to; i += lanes {
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
		filling.Wait()
	}
	crowd(0, few)
	before := file.size(t)
	crowd(few, tips)
	each := (file.size(t) - before) / (tips - few)
	t.Logf("%d bytes a push, %d bytes in all", each, file.size(t))
	if each > 40<<10 {
		t.Errorf("a push takes %d bytes, want at most 40 KiB", each)
	}
}

// size returns the size of the database in bytes, with what is still in its
// write-ahead log.
func (f sqliteFile) size(t *testing.T) (n int64) {
	t.Helper()
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(string(f) + suffix)
		if err != nil {
			t.Fatal(err)
		}
		n += info.Size()
	}
	return n
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
