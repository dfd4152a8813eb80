package txn

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/oklog/ulid/v2"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

// Identifiers of an org are in order within a millisecond. From two of them, nobody can count those
// that other orgs got between.
func TestIDsOfAnOrgDoNotDependOnOthers(t *testing.T) {
	s := newIDs()
	id := func(org int64) string {
		text, err := s.Next(org, EventPrefix, 1_700_000_000_000)
		must.OK(t, err)
		return text
	}
	low := func(text string) uint64 {
		parsed, err := ulid.ParseStrict(text[len(EventPrefix):])
		must.OK(t, err)
		return binary.BigEndian.Uint64(parsed[8:])
	}

	list := []string{id(1)}
	for range 20 {
		for range 1000 {
			id(2)
		}
		list = append(list, id(1))
	}
	if !slices.IsSorted(list) {
		t.Errorf("identifiers are not in order: %q", list)
	}
	for i, text := range list[1:] {
		if step := low(text) - low(list[i]); step > 1<<32 {
			t.Errorf("after 1000 identifiers of another org, the next one is greater by %d, want at most %d", step, 1<<32)
		}
	}
}

// The random part of an identifier does not overflow when its lower half does.
func TestIDsCarry(t *testing.T) {
	if got := (entropy{1, 1<<64 - 1}).plus(2); got != (entropy{2, 1}) {
		t.Errorf("the sum is %v, want {2 1}", got)
	}
}

// In a new millisecond, and for each org, identifiers begin at random.
func TestIDsBeginAtRandom(t *testing.T) {
	s, seen := newIDs(), make(map[entropy]bool)
	for i := range int64(100) {
		_, err := s.Next(i%2, EventPrefix, ledger.Time(1000+i/2))
		must.OK(t, err)
		if e := s.last[i%2]; seen[e] || e.high >= 1<<15 {
			t.Errorf("the random part %v was used before, or leaves no room", e)
		}
		seen[s.last[i%2]] = true
	}
}
