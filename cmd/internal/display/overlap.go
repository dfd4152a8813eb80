package display

import (
	"fmt"
	"io"
	"strings"

	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// Overlaps prints a line for each pair.
func Overlaps(w io.Writer, pairs []ledger.RadarPair) {
	t := terminal.NewTable(w, "LEVEL", "COMMIT", "BRANCH", "AUTHOR", "WITH", "BRANCH", "AUTHOR", "PATH", "REASON")
	for _, pair := range pairs {
		later := pair.Commit
		t.Row(append([]any{pair.Level, ledger.Short(later.SHA), terminal.OrDash(later.Branch),
			terminal.OrDash(terminal.AuthorName(later.Author))}, withCells(pair, pair.Other)...)...)
	}
	t.Flush()
}

// Others prints a line for each commit that the commit sha overlaps with.
func Others(w io.Writer, sha string, pairs []ledger.RadarPair) {
	t := terminal.NewTable(w, "LEVEL", "WITH", "BRANCH", "AUTHOR", "PATH", "REASON")
	for _, pair := range pairs {
		other := pair.Other
		if other.SHA == sha {
			other = pair.Commit
		}
		t.Row(append([]any{pair.Level}, withCells(pair, other)...)...)
	}
	t.Flush()
}

// withCells returns the cells about the other commit of a pair, and about the path.
func withCells(pair ledger.RadarPair, other ledger.RadarCommit) []any {
	author := terminal.OrDash(terminal.AuthorName(other.Author))
	if pair.SameAuthor {
		author += " (same author)"
	}
	if len(pair.Paths) == 0 {
		return []any{ledger.Short(other.SHA), terminal.OrDash(other.Branch), author, terminal.OrDash(""),
			terminal.OrDash("")}
	}
	strongest := pair.Paths[0]
	reason := string(strongest.Reason)
	if pair.PathsTotal > 1 {
		reason += fmt.Sprintf(", +%d more", pair.PathsTotal-1)
	}
	return []any{ledger.Short(other.SHA), terminal.OrDash(other.Branch), author, strongest.Path,
		reason}
}

// maxPushed is how many overlaps 'commit register' prints.
const maxPushed = 5

// Registered prints the strongest overlaps of a commit of repo, ORG/REPO, that was just
// registered.
func Registered(w io.Writer, repo string, commit ledger.Commit) {
	if commit.Radar == nil || len(commit.Radar.Overlaps) == 0 {
		return
	}
	terminal.Printf(w, "Overlaps with commits in flight: %s\n", countOverlaps(commit.CommitSummary))
	pairs := commit.Radar.Overlaps
	Others(w, commit.SHA, pairs[:min(len(pairs), maxPushed)])
	if len(pairs) > maxPushed || commit.Radar.Truncated {
		which := "all"
		if commit.OverlapsTruncated {
			which = "all stored"
		}
		terminal.Printf(w, "To list %s overlaps, run 'ledgerd radar %s --commit %s'.\n", which, repo,
			ledger.Short(commit.SHA))
	}
}

// DryRun prints what a commit of repo, ORG/REPO, would overlap with, at the given
// level or any.
func DryRun(w io.Writer, repo, sha string, result ledger.RadarResult, level radar.Level) {
	name := At(repo, sha)
	switch {
	case len(result.Overlaps) > 0:
		terminal.Printf(w, "If registered now, %s would overlap with:\n", name)
		Others(w, sha, result.Overlaps)
		if result.Truncated {
			terminal.Printf(w, "There are more: these are the %d strongest.\n", len(result.Overlaps))
		}
	case result.Truncated:
		terminal.Printf(w, "%s has no %s overlap among its %d strongest, but it has more\n", name, level,
			radar.MaxPairs)
	case level != radar.NoLevel:
		terminal.Printf(w, "%s has no %s overlap\n", name, level)
	default:
		terminal.Printf(w, "%s has no overlaps\n", name)
	}
}

// maxTruncated is how many commits Truncated names.
const maxTruncated = 3

// Truncated names the commits that have more overlaps than are stored.
func Truncated(w io.Writer, commits []ledger.RadarCommit) {
	if len(commits) == 0 {
		return
	}
	var names []string
	for _, c := range commits[:min(len(commits), maxTruncated)] {
		names = append(names, ledger.Short(c.SHA))
	}
	if rest := len(commits) - len(names); rest > 0 {
		names = append(names, terminal.Plural(int64(rest), "other commit"))
	}
	terminal.Printf(w, "There are more of %s: %s\n", strings.Join(names, ", "), StoredOverlaps())
}

// StoredOverlaps explains which overlaps are stored if a registration finds too many.
func StoredOverlaps() string {
	return fmt.Sprintf("only the %d strongest per registration are stored", radar.MaxPairs)
}

// countOverlaps returns how many overlaps a commit has of each level, and whether it
// has more than are stored.
func countOverlaps(c ledger.CommitSummary) string {
	counts := fmt.Sprintf("%d HIGH, %d MEDIUM, %d LOW", c.Overlaps["HIGH"], c.Overlaps["MEDIUM"], c.Overlaps["LOW"])
	if c.OverlapsTruncated {
		counts += ", and more (" + StoredOverlaps() + ")"
	}
	return counts
}

// radarLine returns whether a commit is in flight, and its number of overlaps.
func radarLine(c ledger.Commit) string {
	flight := "not in flight"
	if c.InFlight {
		flight = "in flight"
	}
	return flight + ", overlaps: " + countOverlaps(c.CommitSummary)
}
