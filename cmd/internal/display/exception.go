package display

import (
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

// ExceptionRow returns the cells of an exception: its commit, requirement, end, signer,
// reason and status.
func ExceptionRow(x ledger.ExceptionRecord, now time.Time) []any {
	end, status := terminal.Parts{x.Until}, "active"
	if x.Ends() {
		end = terminal.Parts{"-"}
	}
	if x.Active {
		end = append(end, terminal.InPipes(EndsSoon(x.Until, now)))
	} else {
		status = x.Inactive
	}
	return []any{ledger.Short(x.Commit), x.Requirement, end, x.Identity, x.Reason, status}
}

// exceptionOf returns a note on the exception that stands in for a requirement.
func exceptionOf(x *ledger.ExceptionStatus, now time.Time) string {
	return fmt.Sprintf("; exception by %s until %s%s: %s", x.Identity, x.Until, EndsSoon(x.Until, now), x.Reason)
}

// EndsSoon returns a note such as " (ends in 5 hours)" if an exception ends within a day,
// or else "".
func EndsSoon(until ledger.Time, now time.Time) string {
	switch left := until.Std().Sub(now); {
	case left <= 0 || left > 24*time.Hour:
		return ""
	case left < time.Hour:
		return fmt.Sprintf(" (ends in %s)", terminal.Plural(int64(left/time.Minute), "minute"))
	default:
		return fmt.Sprintf(" (ends in %s)", terminal.Plural(int64(left/time.Hour), "hour"))
	}
}

// FindException returns the exception of an attestation in the list of its commit, or nil,
// and whether an exception for the same requirement is active.
func FindException(list []ledger.ExceptionRecord, id string) (own *ledger.ExceptionRecord, active bool) {
	for i := range list {
		if list[i].Attestation == id {
			own = &list[i]
		}
	}
	for i := range list {
		active = active || own != nil && list[i].Active && list[i].Requirement == own.Requirement
	}
	return own, active
}
