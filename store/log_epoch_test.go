package store

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/txn"
)

// beginEpoch begins a new epoch of acme's log.
func beginEpoch(t *testing.T, s *Store, epoch int) (before, after events.Log, eventID string) {
	t.Helper()
	before, err := s.Log(t.Context(), "acme", 0)
	must.OK(t, err)
	eventID, err = s.BeginEpoch(t.Context(), before, epoch, epochEvent)
	must.OK(t, err)
	after, err = s.Log(t.Context(), "acme", 0)
	must.OK(t, err)
	return before, after, eventID
}

var epochEvent = ledger.KeyEvent{Action: ledger.KeyAdded, Purpose: ledger.KeyOfLog, Key: "k2", Reason: "restored",
	Previous: &ledger.PreviousLog{Checkpoint: "signed"}}

// wantEpochs checks the logs of acme, which begin at some seqs: their leaves, roots and tiles
// are those of their events.
func wantEpochs(t *testing.T, s *Store, path string, epochs map[int]int) {
	t.Helper()
	db := readRaw(t, path)
	defer db.Close()
	all := recordsIn(t, db)
	for epoch, first := range epochs {
		l, err := s.Log(t.Context(), "acme", epoch)
		must.OK(t, err)
		end := len(all)
		for other, begin := range epochs {
			if other > epoch {
				end = min(end, begin)
			}
		}
		records := all[first:end]
		if l.FirstSeq != int64(first) || l.Leaves != int64(len(records)) || l.Frozen != (end < len(all)) || l.Building {
			t.Fatalf("epoch %d: %+v, want the events from %d to %d", epoch, l, first, end)
		}

		for size := 1; size <= len(records); size += max(1, len(records)/7) {
			root, err := s.Root(t.Context(), l, int64(size))
			must.OK(t, err)
			if root != tlog.Hash(merkleRoot(records[:size])) {
				t.Fatalf("epoch %d: the root of %d leaves is %v", epoch, size, root)
			}
		}
		var full int
		must.OK(t, db.QueryRow("SELECT count(*) FROM tiles WHERE log_id = ? AND level = 0", l.ID).Scan(&full))
		if full != len(records)/proof.TileWidth {
			t.Errorf("epoch %d has %d tiles, want %d", epoch, full, len(records)/proof.TileWidth)
		}
	}
}

// A new epoch begins with an event that commits to all events of the log before, also to those
// that no checkpoint covers.
func TestNewEpoch(t *testing.T) {
	for _, n := range []int{1, 5, 255, 256, 257, 600} {
		s, path := newLogStore(t)
		must.OK(t, appendEvents(t.Context(), s, n, nil))
		old, err := s.Log(t.Context(), "acme", 0)
		must.OK(t, err)
		must.OK(t, s.BeginOrigin(t.Context(), old, "first", "k1"))
		must.OK(t, s.SaveCheckpoint(t.Context(), old, 1, []byte("old")))

		_, l, id := beginEpoch(t, s, 2)
		if l.Epoch != 2 || l.Leaves != 2 || l.Origin != "" || l.Size != 0 {
			t.Errorf("the new log is %+v", l)
		}
		wantEpochs(t, s, path, map[int]int{1: 0, 2: n})
		for _, more := range []int{1, 253, 1, 1, 300} {
			must.OK(t, appendEvents(t.Context(), s, more, nil))
			wantEpochs(t, s, path, map[int]int{1: 0, 2: n})
		}

		body, err := s.Event(t.Context(), "acme", id)
		must.OK(t, err)
		var e ledger.KeyEvent
		must.OK(t, json.Unmarshal(body, &e))
		root := merkleRoot(recordsIn(t, readRaw(t, path))[:n])
		want := ledger.PreviousLog{Origin: "first", Size: int64(n), Root: base64.StdEncoding.EncodeToString(root[:]),
			Checkpoint: "signed"}
		if *e.Previous != want || e.Reason != "restored" || e.Org != "acme" || e.ID != id {
			t.Errorf("the event is %s", body)
		}
		if old, err = s.Log(t.Context(), "acme", 1); err != nil || old.Size != 1 || string(old.Checkpoint) != "old" {
			t.Errorf("the old log is %+v, %v", old, err)
		}
	}
}

// Events of the same transaction are in the log that was present when they were recorded.
func TestNewEpochAmongOtherWrites(t *testing.T) {
	for _, test := range []struct{ before, first, last, after int }{
		{1, 0, 0, 0}, {1, 1, 1, 0}, {200, 55, 254, 1}, {200, 56, 255, 1}, {200, 57, 256, 300}, {255, 600, 600, 600},
	} {
		s, path := newLogStore(t)
		must.OK(t, appendEvents(t.Context(), s, test.before, nil))
		l, err := s.Log(t.Context(), "acme", 0)
		must.OK(t, err)

		must.OK(t, s.db.Change(t.Context(), "acme", func(t *txn.Tx) error {
			r, err := t.FindRepo("acme", "api")
			for range test.first {
				_, appended := s.Journal.AppendPolicy(t, r, 1, policy.Default(), "admin")
				err = errors.Join(err, appended)
			}
			err = errors.Join(err, t.Flush()) // as between two writes
			if _, begin := s.Journal.StartEpoch(t, l, 2, epochEvent); begin != nil {
				return begin
			}
			err = errors.Join(err, t.Flush())
			for range test.last {
				_, appended := s.Journal.AppendPolicy(t, r, 1, policy.Default(), "admin")
				err = errors.Join(err, appended)
			}
			return err
		}))
		wantEpochs(t, s, path, map[int]int{1: 0, 2: test.before + test.first})
		must.OK(t, appendEvents(t.Context(), s, test.after, nil))
		wantEpochs(t, s, path, map[int]int{1: 0, 2: test.before + test.first})
	}
}

// A write that fails leaves the log as it was.
func TestNewEpochThatFails(t *testing.T) {
	s, path := newLogStore(t)
	must.OK(t, appendEvents(t.Context(), s, 250, nil))
	l, err := s.Log(t.Context(), "acme", 0)
	must.OK(t, err)
	failure := errors.New("a write that fails")
	err = s.db.Change(t.Context(), "acme", func(t *txn.Tx) error {
		r, err := t.FindRepo("acme", "api")
		if err != nil {
			return err
		}
		for range 10 { // they fill a tile
			_, appended := s.Journal.AppendPolicy(t, r, 1, policy.Default(), "admin")
			err = errors.Join(err, appended)
		}
		_, begin := s.Journal.StartEpoch(t, l, 2, epochEvent)
		return errors.Join(err, begin, failure)
	})
	if !errors.Is(err, failure) {
		t.Fatal(err)
	}
	wantEpochs(t, s, path, map[int]int{1: 0})
	must.OK(t, appendEvents(t.Context(), s, 300, nil))
	wantLog(t, s, path)
	beginEpoch(t, s, 2)
	wantEpochs(t, s, path, map[int]int{1: 0, 2: 550})

	if _, err := s.BeginEpoch(t.Context(), l, 3, epochEvent); err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("a new epoch of a log that was replaced: %v", err)
	}
	present, err := s.Log(t.Context(), "acme", 0)
	must.OK(t, err)
	for _, epoch := range []int{1, 2} {
		if _, err := s.BeginEpoch(t.Context(), present, epoch, epochEvent); err == nil {
			t.Errorf("epoch %d began after epoch 2", epoch)
		}
	}
}

// Numbers of epochs may be left out. Proofs of events, and the checkpoint that they need, are
// those of the log that has them.
func TestProofsInEpochs(t *testing.T) {
	s, path := newLogStore(t)
	event := func(seq int) string {
		var id string
		db := readRaw(t, path)
		defer db.Close()
		must.OK(t, db.QueryRow("SELECT event_id FROM events WHERE seq = ?", seq).Scan(&id))
		return id
	}
	must.OK(t, appendEvents(t.Context(), s, 10, nil))
	first, err := s.Log(t.Context(), "acme", 0)
	must.OK(t, err)
	must.OK(t, s.SaveCheckpoint(t.Context(), first, 7, []byte("old")))
	beginEpoch(t, s, 4)
	must.OK(t, appendEvents(t.Context(), s, 2, nil))
	_, third, _ := beginEpoch(t, s, 5)
	must.OK(t, appendEvents(t.Context(), s, 4, nil))
	must.OK(t, s.SaveCheckpoint(t.Context(), third, 3, []byte("new")))
	wantEpochs(t, s, path, map[int]int{1: 0, 4: 10, 5: 14}) // each begins with two events

	firstOf := func(seq int) int {
		switch {
		case seq < 10:
			return 0
		case seq < 14:
			return 10
		default:
			return 14
		}
	}

	for seq, want := range map[int]string{0: "old", 6: "old", 7: "epoch 1", 9: "epoch 1", 10: "epoch 4", 13: "epoch 4",
		14: "new", 16: "new", 17: "try again", 18: "try again"} {
		p, err := s.EventProof(t.Context(), "acme", event(seq))
		if err != nil {
			p.Checkpoint = []byte(err.Error())
		}
		if !strings.Contains(string(p.Checkpoint), want) {
			t.Errorf("the proof of event %d has the checkpoint %s, want %s", seq, p.Checkpoint, want)
		}
		if p.Index != int64(seq-firstOf(seq)) {
			t.Errorf("event %d is leaf %d", seq, p.Index)
		}
	}
	if _, err := s.Log(t.Context(), "acme", 2); err == nil {
		t.Error("there is a log of epoch 2")
	}
	logs, err := s.LogsToSign(t.Context(), true, "", 10)
	if err != nil || len(logs) != 1 || logs[0].Epoch != 5 {
		t.Errorf("logs to be signed: %+v, %v", logs, err)
	}
}

// The log of a database that lost an event can be replaced. The new one does not say what its
// root was.
func TestNewEpochOfADamagedLog(t *testing.T) {
	s, path := newLogStore(t)
	must.OK(t, appendEvents(t.Context(), s, 300, nil))
	_, err := readRaw(t, path).Exec("DELETE FROM events WHERE seq = 290")
	must.OK(t, err)
	must.OK(t, appendEvents(t.Context(), s, 300, nil)) // their tile cannot be written
	old, l, id := beginEpoch(t, s, 2)
	if !old.Building || l.Building || l.Leaves != 2 {
		t.Errorf("got %+v after %+v", l, old)
	}
	must.OK(t, appendEvents(t.Context(), s, 300, nil))
	must.OK(t, s.BuildLogsOnce(t.Context()))
	if l, err = s.Log(t.Context(), "acme", 0); err != nil || l.Building || l.Leaves != 302 {
		t.Errorf("got %+v, %v", l, err)
	}
	_, err = s.Root(t.Context(), l, l.Leaves)
	must.OK(t, err)

	body, err := s.Event(t.Context(), "acme", id)
	must.OK(t, err)
	var e ledger.KeyEvent
	must.OK(t, json.Unmarshal(body, &e))
	if e.Previous.Size != 600 || e.Previous.Root != "" {
		t.Errorf("the event is %s", body)
	}
}
