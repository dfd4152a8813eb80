package ledger_test

import (
	"fmt"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
)

// A simulation counts all moves, in the order of their states, and lists the first ones.
func TestSimulationIsBounded(t *testing.T) {
	var s ledger.Simulation
	for i := range 2 * ledger.MaxMoves {
		m := ledger.Move{Commit: fmt.Sprint(i), From: ledger.Attested, To: ledger.Validating}
		switch i % 4 {
		case 1:
			m.To = ledger.Promotable
		case 2:
			m.From = ledger.Validating
		}
		s.Add(m)
	}

	if len(s.Moves) != ledger.MaxMoves || s.Truncated != ledger.MaxMoves || s.Total() != 2*ledger.MaxMoves {
		t.Errorf("%d moves are listed, %d truncated, and the total is %d", len(s.Moves), s.Truncated, s.Total())
	}
	for i, m := range s.Moves {
		if m.Commit != fmt.Sprint(i) {
			t.Fatalf("move %d is of commit %s", i, m.Commit)
		}
	}
	want := "[{VALIDATING VALIDATING 500} {ATTESTED VALIDATING 1000} {ATTESTED PROMOTABLE 500}]"
	if got := fmt.Sprint(s.Sums); got != want {
		t.Errorf("sums %s, want %s", got, want)
	}
}
