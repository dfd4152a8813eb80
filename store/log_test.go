package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/txn"
)

// merkleRoot computes the root of a tree as RFC 6962, section 2.1, defines it.
func merkleRoot(records [][]byte) [32]byte {
	switch len(records) {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		return sha256.Sum256(append([]byte{0}, records[0]...))
	}
	k := 1 << (bits.Len(uint(len(records)-1)) - 1) // the largest power of two below the number
	left, right := merkleRoot(records[:k]), merkleRoot(records[k:])
	return sha256.Sum256(slices.Concat([]byte{1}, left[:], right[:]))
}

// recordsIn reads the records of an org's leaves from the table of events, and checks that
// each commits to its body.
func recordsIn(t *testing.T, db *sql.DB) [][]byte {
	t.Helper()
	rows, err := db.Query("SELECT event_id, type, at, salt, leaf, body FROM events WHERE org_id = 1 ORDER BY seq")
	must.OK(t, err)
	defer rows.Close()
	var records [][]byte
	for rows.Next() {
		var id, kind string
		var at ledger.Time
		var salt, leaf, body []byte
		must.OK(t, rows.Scan(&id, &kind, &at, &salt, &leaf, &body))
		tagged := slices.Concat([]byte("ledgerd/leaf/v1\x00"), salt, body)
		if want := sha256.Sum256(tagged); !slices.Equal(leaf, want[:]) || len(salt) != 16 {
			t.Fatalf("event %d has the leaf %x, want %x", len(records), leaf, want)
		}
		records = append(records, fmt.Appendf(nil, `{"at":"%s","event":"%s","hash":"%x","type":"%s"}`, at, id, leaf, kind))
	}
	must.OK(t, rows.Err())
	return records
}

// newLogStore returns a store with the repo acme/api.
func newLogStore(t testing.TB) (s *Store, path string) {
	t.Helper()
	path = NewFile(t)
	s, err := Open(t.Context(), path, Options{})
	must.OK(t, err)
	t.Cleanup(func() { s.Close() })
	createAcme(t, s)
	forgetEvents(t, s)
	return s, path
}

// forgetEvents deletes the events of creating orgs and repos, so that a test counts its own.
func forgetEvents(t testing.TB, s *Store) {
	t.Helper()
	must.OK(t, s.db.Change(t.Context(), "", func(t *txn.Tx) error {
		return t.Run("DELETE FROM audits; DELETE FROM outbox; DELETE FROM events; UPDATE orgs SET next_seq = 0")
	}))
}

// appendEvents appends n events of acme/api in one write, which returns err.
func appendEvents(ctx context.Context, s *Store, n int, failure error) error {
	return s.db.Change(ctx, "acme", func(t *txn.Tx) error {
		r, err := t.FindRepo("acme", "api")
		if err != nil {
			return err
		}
		for range n {
			if _, err := s.Journal.AppendPolicy(t, r, 1, policy.Default(), "admin"); err != nil {
				return err
			}
		}
		return failure
	})
}

// wantLog compares the log of acme with the tree over its events.
func wantLog(t *testing.T, s *Store, path string) {
	t.Helper()
	db := readRaw(t, path)
	defer db.Close()
	records := recordsIn(t, db)
	l, err := s.Log(t.Context(), "acme", 0)
	must.OK(t, err)
	if l.Leaves != int64(len(records)) || l.Building {
		t.Fatalf("the log has %d leaves, building: %t; want %d", l.Leaves, l.Building, len(records))
	}

	for _, size := range []int{len(records), len(records) / 2, 256, 1} {
		if size > len(records) {
			continue
		}
		root, err := s.Root(t.Context(), l, int64(size))
		must.OK(t, err)
		if want := tlog.Hash(merkleRoot(records[:size])); root != want {
			t.Fatalf("the root of %d leaves is %v, want %v", size, root, want)
		}
	}

	var full int
	must.OK(t, db.QueryRow("SELECT count(*) FROM tiles WHERE level = 0 AND length(hashes) = 8192").Scan(&full))
	if full != len(records)/proof.TileWidth {
		t.Errorf("%d tiles are stored, want %d", full, len(records)/proof.TileWidth)
	}
}

// The log has every event whose write succeeded, in order, however many a write has.
func TestLogHasEveryEvent(t *testing.T) {
	s, path := newLogStore(t)
	wantLog(t, s, path)
	failure := errors.New("a write that fails")
	for _, n := range []int{1, 254, 1, 1, 1, 300, 255, 256, 1000} {
		if err := appendEvents(t.Context(), s, 3, failure); !errors.Is(err, failure) {
			t.Fatal(err)
		}
		must.OK(t, appendEvents(t.Context(), s, n, nil))
		wantLog(t, s, path)
	}
}

// Each tile that a checkpoint covers can be read, and no other. Its hashes and records are
// those of the events.
func TestTilesOfACheckpoint(t *testing.T) {
	s, path := newLogStore(t)
	must.OK(t, appendEvents(t.Context(), s, 600, nil))
	l, err := s.Log(t.Context(), "acme", 0)
	must.OK(t, err)
	must.OK(t, s.SaveCheckpoint(t.Context(), l, 600, []byte("signed")))
	must.OK(t, appendEvents(t.Context(), s, 300, nil)) // not in the checkpoint
	if l, err = s.Log(t.Context(), "acme", 1); err != nil || l.Size != 600 || l.Leaves != 900 {
		t.Fatalf("got %+v, %v", l, err)
	}
	records := recordsIn(t, readRaw(t, path))

	for _, test := range []struct {
		tile proof.Tile
		ok   bool
	}{
		{proof.Tile{Level: 0, N: 0, Width: 256}, true},
		{proof.Tile{Level: 0, N: 0, Width: 3}, true},
		{proof.Tile{Level: 0, N: 1, Width: 256}, true},
		{proof.Tile{Level: 0, N: 2, Width: 88}, true},
		{proof.Tile{Level: 0, N: 2, Width: 89}, false},
		{proof.Tile{Level: 0, N: 2, Width: 256}, false},
		{proof.Tile{Level: 0, N: 3, Width: 1}, false},
		{proof.Tile{Level: 1, N: 0, Width: 2}, true},
		{proof.Tile{Level: 1, N: 0, Width: 3}, false},
		{proof.Tile{Level: 2, N: 0, Width: 1}, false},
		{proof.Tile{Level: proof.Entries, N: 2, Width: 88}, true},
		{proof.Tile{Level: proof.Entries, N: 2, Width: 89}, false},
	} {
		got, err := s.Tile(t.Context(), l, test.tile)
		if (err == nil) != test.ok {
			t.Errorf("tile %s: %v, want one: %t", test.tile.Path(), err, test.ok)
			continue
		}
		if !test.ok {
			continue
		}
		if want := tileOf(records, test.tile); !slices.Equal(got, want) {
			t.Errorf("tile %s has %d bytes that differ, want %d", test.tile.Path(), len(got), len(want))
		}
	}
}

// tileOf computes a tile from all records, as C2SP tlog-tiles defines it.
func tileOf(records [][]byte, tile proof.Tile) (b []byte) {
	span := 1
	for range tile.Level {
		span *= 256
	}
	for i := int(tile.N) * 256; i < int(tile.N)*256+tile.Width; i++ {
		if tile.Level == proof.Entries {
			b = append(b, byte(len(records[i])>>8), byte(len(records[i])))
			b = append(b, records[i]...)
			continue
		}
		hash := merkleRoot(records[i*span : (i+1)*span])
		b = append(b, hash[:]...)
	}
	return b
}

// The log of a database from before logs is built in the background, with the events that
// are recorded in the meantime.
func TestLogIsBuiltAfterAnUpgrade(t *testing.T) {
	for _, test := range []struct{ old, during, after int }{
		{1, 0, 0}, {1, 1, 1}, {254, 1, 1}, {255, 0, 1}, {256, 256, 256}, {1023, 1, 300}, {1100, 0, 0}, {2000, 700, 600},
	} {
		t.Run(fmt.Sprint(test), func(t *testing.T) {
			s, path := newLogStore(t)
			must.OK(t, appendEvents(t.Context(), s, test.old, nil))
			db := readRaw(t, path)
			_, err := db.Exec("UPDATE events SET salt = NULL, leaf = NULL; DELETE FROM tiles; UPDATE orgs SET log_built = 0")
			must.OK(t, err)

			if logs, err := s.LogsToSign(t.Context(), true, "", 10); err != nil || len(logs) > 0 {
				t.Errorf("logs to be signed: %v, %v; want none before they are built", logs, err)
			}
			for range test.during {
				must.OK(t, appendEvents(t.Context(), s, 1, nil))
			}
			built := make(chan error)
			go func() { built <- s.BuildLogsOnce(t.Context()) }()
			for range test.after {
				must.OK(t, appendEvents(t.Context(), s, 1, nil))
			}
			must.OK(t, <-built)
			wantLog(t, s, path)
			must.OK(t, appendEvents(t.Context(), s, 300, nil))
			wantLog(t, s, path)
		})
	}
}

// A leaf that was deleted from the database does not stop writes: the builder reports it.
func TestMissingLeafDoesNotStopWrites(t *testing.T) {
	s, path := newLogStore(t)
	must.OK(t, appendEvents(t.Context(), s, 200, nil))
	db := readRaw(t, path)
	_, err := db.Exec("DELETE FROM events WHERE seq = 17")
	must.OK(t, err)
	must.OK(t, appendEvents(t.Context(), s, 100, nil))
	if err := s.BuildLogsOnce(t.Context()); !errors.Is(err, events.ErrIncomplete) {
		t.Errorf("building: %v, want %v", err, events.ErrIncomplete)
	}
	if logs, err := s.LogsToSign(t.Context(), true, "", 10); err != nil || len(logs) > 0 {
		t.Errorf("logs to be signed: %v, %v; want none", logs, err)
	}
}
