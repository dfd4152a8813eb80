package display

import (
	"cmp"
	"fmt"
	"io"

	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

// Artifact prints an artifact with its links, and whether it has reached a state.
func Artifact(w io.Writer, org string, a ledger.Artifact, required ledger.State) {
	verdict := fmt.Sprintf("✗ (%s required)", required)
	if a.Reached(required) {
		verdict = "✓"
	}
	fmt.Fprintf(w, "%s is %s %s\n", a.Digest, ArtifactState(a), verdict)
	if a.Reason != "" {
		fmt.Fprintf(w, "%s\n", terminal.Printable(a.Reason))
	}
	if len(a.Links) == 0 {
		return
	}

	t := terminal.NewTable(w, "", "COMMIT", "STATE", "LINKED BY", "SIGNED BY", "REASON")
	for _, l := range a.Links {
		mark := "✗"
		switch {
		case !l.Counts:
			mark = "-"
		case l.State >= required:
			mark = "✓"
		}
		t.Row(mark, At(org+"/"+l.Repo, l.Commit), l.State, l.Predicate, l.Identity, cmp.Or(l.Reason, "counts"))
	}
	t.Flush()
	if a.Truncated {
		fmt.Fprintln(w, "There are more links.")
	}
}

// ArtifactState returns the state of an artifact as text.
func ArtifactState(a ledger.Artifact) string {
	if a.State == nil {
		return "unknown"
	}
	return a.State.String()
}
