// Package display prints the records of the ledger for people, as tables and lines
// on a terminal.
package display

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

// Commit prints the record of a commit.
func Commit(w io.Writer, c ledger.Commit, now time.Time) {
	t := terminal.NewTable(w)
	t.Row("commit", c.SHA)
	t.Row("state", terminal.Parts{terminal.State(c.State, c.Standing), terminal.Since(c.StateSince)})
	t.Row("branch", fmt.Sprintf("%s → %s", terminal.OrDash(c.Branch), terminal.OrDash(c.Target)))
	if len(c.Targets) > 1 {
		t.Row("targets", strings.Join(c.Targets, ", "))
	}
	t.Row("author", terminal.Author(c.Author))
	for _, w := range c.Writers {
		t.Row("with", terminal.Author(w))
	}
	if c.Proven {
		t.Row("proven", "by its commit object, tree "+c.Tree)
	}
	for _, key := range c.SigningKeys {
		t.Row("signed by", "key "+key)
	}
	for _, m := range c.Merges {
		t.Row(m.Kind, mergeLine(m))
	}
	t.Row("message", terminal.OrDash(c.Message))
	t.Row("changes", changes(c))
	t.Row("radar", radarLine(c))
	t.Flush()

	RolledBack(w, c.RolledBack)
	openViolations(w, c)
	terminal.Printf(w, "\nrequirements (policy v%d)\n", c.PolicyVersion)
	Requirements(w, c.Requirements, now)

	terminal.Printf(w, "\n%s\n", terminal.Plural(c.Attested, "attestation"))
	t = terminal.NewTable(w)
	t.Indent = "  "
	for _, a := range c.Attestations {
		t.Row(a.RecordedAt, terminal.Evidence(a), StatusOf(a), a.Identity, a.ID)
	}
	t.Flush()

	corrections(w, c.Corrections)

	terminal.Printf(w, "\n%s\n", terminal.Plural(int64(len(c.Transitions)), "transition"))
	t = terminal.NewTable(w)
	t.Indent = "  "
	for _, m := range c.Transitions {
		t.Row(TransitionRow(m)...)
	}
	t.Flush()
}

// corrections prints a line for each correction of a commit.
func corrections(w io.Writer, list []ledger.Correction) {
	if len(list) == 0 {
		return
	}
	terminal.Printf(w, "\n%s\n", terminal.Plural(int64(len(list)), "correction"))
	t := terminal.NewTable(w)
	t.Indent = "  "
	for _, c := range list {
		t.Row(c.At, c.Field, fmt.Sprintf("%s → %s", terminal.OrDash(terminal.OneLine(c.Before)),
			terminal.OrDash(terminal.OneLine(c.After))), "by "+c.By)
	}
	t.Flush()
}

// TransitionRow returns the cells of a transition: when, what and why.
func TransitionRow(m ledger.Transition) []any {
	return []any{m.At, fmt.Sprintf("%s → %s", m.From, m.To), "by " + terminal.Cause(m.Cause)}
}

// changes returns how many paths a commit changes. A commit without a
// change record may be in the ledger only because it was attested.
func changes(c ledger.Commit) string {
	switch {
	case c.Paths != nil:
		return fmt.Sprintf("%s, and of earlier registrations: %s", terminal.Plural(int64(len(c.Changes)), "path"),
			terminal.Plural(int64(len(c.Paths)), "path"))
	case c.Changes != nil:
		return terminal.Plural(int64(len(c.Changes)), "path")
	case c.Author == (ledger.Author{}):
		return "unknown (run 'ledgerd commit register')"
	}
	return "no change record"
}
