package display

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

// Shipped prints what a deployment of a commit of a repo would ship: the commits that are not covered, and what to do
// about them. The delivery is nil if the policy does not ask for it.
func Shipped(w io.Writer, repo, sha string, d *ledger.Delivery) {
	if d == nil {
		return
	}
	terminal.Printf(w, "%s\n", shippedLine(repo, sha, d))
	if len(d.Gaps) > 0 {
		t := terminal.NewTable(w, "COMMIT", "SUBJECT", "AUTHOR", "REASON")
		t.Indent, t.Wrap = "  ", true
		for _, g := range d.Gaps {
			t.Row(ledger.Short(g.Commit), g.Subject, terminal.Author(g.Author), strings.Join(g.Reasons, "; "))
		}
		t.Flush()
		if more := d.Uncovered - len(d.Gaps); more > 0 {
			terminal.Printf(w, "  and %d more\n", more)
		}
	}

	if what := remedy(repo, sha, d); what != "" {
		terminal.Printf(w, "%s\n", what)
	}
}

// remedy says how to cover the commits that are not covered, unless their reasons do: of the commit itself, and of
// those that the ledger does not know.
func remedy(repo, sha string, d *ledger.Delivery) string {
	others := slices.DeleteFunc(slices.Clone(d.Gaps), func(g ledger.Gap) bool { return g.Commit == sha })
	switch {
	case d.Uncovered == 0:
		return ""
	case d.Base == nil:
		return fmt.Sprintf("To say what runs there, use ledgerd environment baseline %s %s REV --key FILE.", repo,
			d.Environment)
	case d.TooLong:
		return "Deploy a commit in between first."
	case len(others) == 0 || slices.ContainsFunc(others, func(g ledger.Gap) bool { return g.Unknown }):
		return ""
	}

	const review = "use ledgerd review approve %s %s--commit %s --key FILE."
	first, since := ledger.Short(others[0].Commit), "--from "+ledger.Short(d.Base.Commit)+" "
	switch {
	case len(others) == 1 && len(d.Gaps) == d.Uncovered:
		return fmt.Sprintf("To review it, "+review, repo, "", first)
	case !d.ContainsBase:
		return fmt.Sprintf("To review the first, "+review, repo, "", first)
	case d.Commits > ledger.MaxReviewed:
		return fmt.Sprintf("To review all of them in steps of at most %d commits, begin with this: "+review,
			ledger.MaxReviewed, repo, since, "REV")
	}
	return fmt.Sprintf("To review all of them, "+review, repo, since, ledger.Short(sha))
}

// shippedLine says how much a deployment would ship, and how much of that is not covered.
func shippedLine(repo, sha string, d *ledger.Delivery) string {
	line := fmt.Sprintf("It is not known what runs in %s: a deployment of %s ships all below it, ", d.Environment,
		At(repo, sha))
	if d.Base != nil {
		line = fmt.Sprintf("A deployment of %s to %s, where %s runs, ships ", At(repo, sha), d.Environment,
			ledger.Short(d.Base.Commit))
	}
	if d.TooLong {
		line += "more than "
	}
	line += terminal.Plural(int64(d.Commits), "commit")

	switch {
	case d.TooLong:
		return line + ", which are too many to look at."
	case d.Uncovered == 0:
		return line + ", and all of that is covered."
	case d.Uncovered == 1:
		return line + ", and 1 is not covered:"
	}
	return fmt.Sprintf("%s, and %d are not covered:", line, d.Uncovered)
}
