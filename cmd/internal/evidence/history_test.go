package evidence

import (
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// Events that are newer than what was read of a commit are left out, as are those of others.
func TestHistoryWants(t *testing.T) {
	by := ledger.Cause{Type: ledger.CauseAttestation, ID: "att_1"}
	moves := []ledger.Transition{{From: ledger.Draft, To: ledger.Attested, At: 10, Cause: by},
		{From: ledger.Attested, To: ledger.Promotable, At: 20, Cause: by}}
	h := &history{transitions: map[string][]ledger.Transition{"a": moves, "b": nil},
		facts: map[string]string{"a": "sha256:2", "b": "sha256:1"}, versions: map[int]bool{2: true}, earliest: 10, left: 3}
	state := func(commit string, from, to ledger.State, at ledger.Time) listed {
		return listed{Type: ledger.EventState, Commit: commit, From: from, To: to, Timestamp: at, Cause: by}
	}
	known := func(commit, facts string) listed {
		return listed{Type: ledger.EventCommit, Commit: commit, Facts: facts}
	}
	version := func(n int) listed { return listed{Type: ledger.EventPolicy, Version: n} }
	old := ledger.Time(10).Add(-slack - time.Millisecond)

	for i, step := range []struct {
		event listed
		want  bool
	}{
		{state("a", ledger.Promotable, ledger.Deployed, 30), false}, // since then
		{known("a", "sha256:3"), false},
		{version(3), false},
		{state("c", ledger.Attested, ledger.Promotable, 20), false}, // of another commit
		{state("b", ledger.Attested, ledger.Promotable, 20), false},
		{state("a", ledger.Attested, ledger.Promotable, 20), true},
		{known("a", "sha256:2"), true},
		{known("a", "sha256:1"), true},
		{known("c", "sha256:1"), false},
		{version(2), true},
		{version(2), false},
		{listed{Type: ledger.EventViolation, Commit: "a"}, true},
		{listed{Type: ledger.EventViolation, Commit: "c"}, false},
		{state("a", ledger.Draft, ledger.Attested, 10), true},
		{state("a", ledger.Draft, ledger.Attested, 10), false},
	} {
		if h.left > 0 && h.isComplete(old) {
			t.Errorf("complete before event %d", i)
		}
		if got := h.wants(step.event); got != step.want {
			t.Errorf("event %d is wanted: %v", i, got)
		}
	}
	if !h.isComplete(old) || h.isComplete(old+1) {
		t.Error("it is not complete at the time at which it is")
	}
}
