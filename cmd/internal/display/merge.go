package display

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

// mergeLine describes a claim that a commit is a merge.
func mergeLine(m ledger.MergeClaim) string {
	line := fmt.Sprintf("of %s, by %s", ledger.Short(m.Source), terminal.Printable(m.Identity))
	if m.Reason != "" {
		return line + ": nothing carries, " + m.Reason
	}
	if m.Parent != "" {
		return line + ": " + ledger.Short(m.Parent) + " on the mainline is " + m.ParentState.String()
	}
	return line + ": the first parent was " + m.ParentState.String()
}

// UselessClaim prints why nothing carries by an attestation, if it claims that the commit is
// a merge: what is wrong with the claim, or else what requirements say of it that are not met.
func UselessClaim(w io.Writer, c ledger.Commit, attestation string, now time.Time) {
	i := slices.IndexFunc(c.Merges, func(m ledger.MergeClaim) bool { return m.Attestation == attestation })
	if i < 0 {
		return
	}
	if m := c.Merges[i]; m.Reason != "" {
		terminal.Printf(w, "Nothing carries from %s: %s\n", ledger.Short(m.Source), m.Reason)
		return
	}
	unmet := slices.DeleteFunc(slices.Clone(c.Requirements),
		func(r ledger.RequirementStatus) bool { return r.Met || !r.Applies })
	if len(unmet) > 0 && c.State < ledger.Promotable {
		Requirements(w, unmet, now)
	}
}
