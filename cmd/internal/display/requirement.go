package display

import (
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

// Uncounted prints for which unmet requirements an attestation that passes does not count, with their reasons.
func Uncounted(w io.Writer, c ledger.Commit, a ledger.AttestationRecord) {
	for _, r := range c.Requirements {
		if !r.Applies || r.Met || a.Result.Status != ledger.Pass || slices.Contains(r.SignersCounted, a.Identity) {
			continue
		}
		if prefix, isPrefix := strings.CutSuffix(r.Predicate, "*"); isPrefix && strings.HasPrefix(a.Predicate, prefix) ||
			r.Predicate == a.Predicate {
			terminal.Printf(w, "NOTE: it does not count for %s: %s\n", r.State, terminal.Printable(r.Reason))
		}
	}
}

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
