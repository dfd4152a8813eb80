package store_test

import (
	"errors"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
)

// A recorded statement is a duplicate if it is sent again, also if this release would refuse it as a new one.
func TestStatementOfAnEarlierReleaseIsADuplicate(t *testing.T) {
	l := newTimeline(t)
	first := l.attest(1, "test:go")
	const reserved = "signed:go"
	again, created, err := l.send(1, reserved)
	if err != nil || created || again.ID != first.ID {
		t.Errorf("sent again: %s, created %t, %v; want %s", again.ID, created, err, first.ID)
	}

	l.n++
	_, _, err = l.send(1, reserved)
	if e, ok := errors.AsType[*ledger.Error](err); !ok || e.Code != ledger.CodeInvalidStatement {
		t.Errorf("a new statement: %v, want %s", err, ledger.CodeInvalidStatement)
	}
}
