package display

import (
	"fmt"
	"io"

	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

// Artifact prints an artifact with its links, and whether it has reached a state.
func Artifact(w io.Writer, org string, a ledger.Artifact, required ledger.State) {
	fmt.Fprintln(w, ArtifactTitle(a, required))
	if a.Reason != "" {
		terminal.Printf(w, "%s\n", terminal.Printable(a.Reason))
	}
	if !a.IsNamed() {
		fmt.Fprintln(w, "To link it with its commit, record a statement that names both, such as SLSA provenance: "+
			"'ledgerd attest ORG/REPO --statement provenance.json --key ci.key'. Check the digest too.")
	}
	for _, warning := range a.Warnings {
		fmt.Fprintf(w, "Warning: %s: %s.\n", terminal.Printable(string(warning)), warning.Advice())
	}
	if len(a.Links) == 0 {
		return
	}

	t := terminal.NewTable(w, "", "COMMIT", "STATE", "LINKED BY", "SIGNED BY", "REASON")
	t.Wrap = true
	for _, l := range a.Links {
		mark, reason := terminal.Link(l, required)
		t.Row(mark, At(org+"/"+l.Repo, l.Commit), terminal.State(l.State, l.Standing), l.Predicate, l.Identity, reason)
	}
	t.Flush()
	if a.Truncated {
		fmt.Fprintln(w, "There are more links.")
	}
	for _, l := range a.Links {
		if l.Delivery != nil && l.Delivery.Uncovered > 0 {
			Shipped(w, org+"/"+l.Repo, l.Commit, l.Delivery)
		}
	}
}

// ArtifactTitle says which state an artifact has, and whether that is the required one.
func ArtifactTitle(a ledger.Artifact, required ledger.State) string {
	verdict := fmt.Sprintf("✗ (%s required)", required)
	if a.Reached(required) {
		verdict = "✓"
	}
	return fmt.Sprintf("%s is %s %s", a.Digest, ArtifactState(a), verdict)
}

// ArtifactState returns the state of an artifact, with its standing, as text.
func ArtifactState(a ledger.Artifact) string {
	if a.State == nil {
		return "unknown"
	}
	return terminal.State(*a.State, *a.Standing)
}
