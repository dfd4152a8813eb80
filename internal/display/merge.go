package display

import (
	"fmt"
	"io"

	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

// mergeLine describes a claim that a commit is a merge.
func mergeLine(m ledger.MergeClaim) string {
	line := fmt.Sprintf("of %s, by %s", terminal.Short(m.Source), terminal.Printable(m.Identity))
	if m.Reason != "" {
		return line + ": nothing carries, " + m.Reason
	}
	return line + ": the first parent was " + m.ParentState.String()
}

// UselessClaim prints why nothing carries by an attestation, if it claims that the commit is
// a merge.
func UselessClaim(w io.Writer, c ledger.Commit, attestation string) {
	for _, m := range c.Merges {
		if m.Attestation == attestation && m.Reason != "" {
			fmt.Fprintf(w, "Nothing carries from %s: %s\n", terminal.Short(m.Source), m.Reason)
		}
	}
}
