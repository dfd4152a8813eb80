package verify

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
)

// A Replacement says that a log goes on as the log of a later epoch.
type Replacement struct {
	Reason string
	At     ledger.Time
	// Old is the whole tree of the log that was replaced, signed or not, and Epoch its epoch.
	Old   proof.Checkpoint
	Epoch int
	// Known is the last known checkpoint of the old log as a signed note; empty if it was not known.
	Known string
}

// SplitOrigin returns the origin of the first epoch of a log, and the epoch. It reports false
// for names that no ledger gives.
func SplitOrigin(origin string) (first string, epoch int, ok bool) {
	if strings.HasSuffix(origin, "/log") {
		return origin, 1, true
	}
	first, number, _ := cutLast(origin, "/")
	epoch, err := strconv.Atoi(number)
	return first, epoch, err == nil && epoch > 1 && strconv.Itoa(epoch) == number && strings.HasSuffix(first, "/log")
}

func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return s, "", false
}

// IsLaterEpoch reports whether the second origin names a later epoch of the log that the first
// one names.
func IsLaterEpoch(before, after string) bool {
	first, old, ok := SplitOrigin(before)
	again, epoch, okToo := SplitOrigin(after)
	return ok && okToo && first == again && epoch > old
}

// ReplacementOf returns what the first event of a log says about the log before it. It reports
// false if the event is about something else.
func ReplacementOf(origin string, body []byte) (r Replacement, ok bool, err error) {
	var e ledger.KeyEvent
	if err := ledger.DecodeOpen(body, &e); err != nil {
		return r, false, fmt.Errorf("the first event of %s is not valid: %w", origin, err)
	}
	if e.Type != ledger.EventKey || e.Purpose != ledger.KeyOfLog || e.Previous == nil {
		return r, false, nil
	}

	p := e.Previous
	if !IsLaterEpoch(p.Origin, origin) {
		return r, false, fmt.Errorf("the first event of %s names %s, which is not an earlier epoch of it", origin, p.Origin)
	}
	root, err := base64.StdEncoding.DecodeString(p.Root)
	r = Replacement{Reason: e.Reason, At: e.Timestamp, Known: p.Checkpoint}
	r.Old.Origin, r.Old.Size = p.Origin, p.Size
	if err != nil || len(root) != len(r.Old.Root) || p.Size < 1 {
		return r, false, fmt.Errorf("the first event of %s does not commit to the events of %s, which were damaged", origin,
			p.Origin)
	}
	copy(r.Old.Root[:], root)
	_, r.Epoch, _ = SplitOrigin(p.Origin)
	return r, true, nil
}

// Keeps checks that a log that was replaced had what was seen of it, as far as that can be
// known: the seen checkpoint is not of another history. It returns how many of the seen events
// were lost. The key is that of the old log, and the tiles are of its whole tree. The error is a
// *Conflict if the old log has had two histories, and a *FetchError if a tile cannot be read.
func (r Replacement) Keeps(seen proof.Checkpoint, key note.Verifier, tiles *Tiles) (lost int64, err error) {
	if r.Known != "" {
		known, err := proof.OpenCheckpoint([]byte(r.Known), key)
		if err != nil {
			return 0, fmt.Errorf("the last known checkpoint of %s, in the first event of the new log: %w", r.Old.Origin, err)
		}
		if known.Size == seen.Size && known.Root != seen.Root {
			return 0, &Conflict{Fork, seen, known}
		}
	}
	if seen.Size > r.Old.Size {
		return seen.Size - r.Old.Size, nil
	}
	return 0, Extends(seen, r.Old, tiles)
}
