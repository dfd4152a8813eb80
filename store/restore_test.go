package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// eventAt returns an ID of an event with that time, which no ledger has.
func eventAt(at time.Time) string {
	return "evt_" + ulid.MustNew(ulid.Timestamp(at), strings.NewReader(strings.Repeat("x", 10))).String()
}

// TestCut restores a database twice: with three events at 1:00, and at 3:00 with two more, of
// which one is that of the first restore.
func TestCut(t *testing.T) {
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	start := now
	path := storetest.NewFile(t)
	db, err := store.Open(t.Context(), path, store.Options{Now: func() time.Time { return now },
		Monotonic: func() time.Duration { return now.Sub(start) }})
	must.OK(t, err)
	t.Cleanup(func() { db.Close() })
	hour := func(n float64) time.Time { return start.Add(time.Duration(n * float64(time.Hour))) }

	storetest.CreateAcme(t, db)
	register := func(n int) {
		_, _, err := db.Register(t.Context(), "acme", "api", strings.Repeat("0", 39)+string(rune('0'+n)),
			ledger.Registration{Branch: "main"})
		must.OK(t, err)
	}
	tail, err := db.Tail(t.Context(), "acme")
	must.OK(t, err)
	wantNoCut := func(id string) {
		t.Helper()
		if cut, ok, err := tail.Cut(t.Context(), id); ok || err != nil {
			t.Errorf("the history is cut back for %s: %+v, %v", id, cut, err)
		}
	}
	wantCut := func(id string, seq int64, at time.Time) {
		t.Helper()
		cut, ok, err := tail.Cut(t.Context(), id)
		must.OK(t, err)
		if !ok || cut.Seq != seq || !cut.RestoredAt.Std().Equal(at) {
			t.Errorf("for %s the history is cut back at %d, restored at %v, %v; want %d and %v", id, cut.Seq,
				cut.RestoredAt, ok, seq, at)
		}
	}

	wantNoCut(eventAt(hour(0.5)))
	now = hour(0.1)
	register(1)
	now = hour(1)
	_, err = db.NoteRestore(t.Context())
	must.OK(t, err)
	wantCut(eventAt(hour(0.5)), 3, hour(1)) // after those of org, repo and commit
	wantCut(eventAt(hour(1.9)), 3, hour(1)) // the clock of the host may have been behind
	wantNoCut(eventAt(hour(2.1)))
	wantNoCut(eventAt(hour(0))) // an event of that time would be in the backup
	wantNoCut("evt_x")
	wantNoCut(strings.Replace(eventAt(hour(0.5)), "evt_", "att_", 1))

	register(2)
	now = hour(3)
	restored, err := db.NoteRestore(t.Context())
	must.OK(t, err)
	if len(restored) != 1 || restored[0].Org != "acme" || restored[0].Events != 5 || restored[0].At.Std() != hour(1) {
		t.Errorf("got %+v, want the five events of acme", restored)
	}
	wantCut(eventAt(hour(0.5)), 3, hour(3))
	wantCut(eventAt(hour(2.5)), 5, hour(3))
}
