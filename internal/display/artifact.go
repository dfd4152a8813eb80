package display

import (
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
	if !a.IsNamed() {
		fmt.Fprintln(w, "To link it with its commit, record a statement that names both, such as SLSA provenance: "+
			"'ledgerd attest ORG/REPO --statement provenance.json --key ci.key'. Check the digest too.")
	}
	if len(a.Links) == 0 {
		return
	}

	t := terminal.NewTable(w, "", "COMMIT", "STATE", "LINKED BY", "SIGNED BY", "REASON")
	t.Wrap = true
	for _, l := range a.Links {
		mark, reason := "✗", fmt.Sprintf("has not reached %s", required)
		switch {
		case !l.Counts:
			mark, reason = "-", "does not count: "+l.Reason
		case l.State >= required:
			mark, reason = "✓", "counts"
		}
		t.Row(mark, At(org+"/"+l.Repo, l.Commit), l.State, l.Predicate, l.Identity, reason)
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
