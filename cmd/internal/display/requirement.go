package display

import (
	"io"
	"time"

	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

// Requirements prints a line for each requirement of a policy.
func Requirements(w io.Writer, requirements []ledger.RequirementStatus, now time.Time) {
	t := terminal.NewTable(w, "", "STATE", "PREDICATE", "HAVE", "REASON")
	t.Wrap = true
	for _, r := range requirements {
		mark, have := terminal.Requirement(r)
		reason := r.Reason
		if r.Exception != nil {
			reason += exceptionOf(r.Exception, now)
		}
		t.Row(mark, r.State, r.Predicate, have, reason)
	}
	t.Flush()
}
