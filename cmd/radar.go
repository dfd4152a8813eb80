package cmd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/internal/registration"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// A radarQuery says which overlaps the command shows.
type radarQuery struct {
	filter client.OverlapFilter
	base   string
	dryRun bool
	failOn radar.Level
	limit  int
}

func newRadar(p *program) *cobra.Command {
	var q radarQuery
	command := &cobra.Command{
		Use:   "radar ORG/REPO",
		Short: "Show which commits in flight collide, and how badly",
		Long: `Lists the overlaps of a repo's commits in flight, the strongest first. HIGH: git
cannot merge the two. MEDIUM: both change one file, and git merges them. LOW:
both change files of one directory. The commit registered later is the one to
rebase.

With --dry-run it asks what HEAD of this git work tree, or the commit that
--commit names, would overlap with if it were pushed now. Nothing is written, and
a token with the scope read is enough.

EXIT STATUS
  0  told
  1  could not tell: no answer, a refusal, or a clone that does not hold what the
     commit changes; with --commit and --fail-on, a commit that the radar leaves
     out, having no change record or no branch
  2  wrong usage
  4  one of the overlaps shown is of the level of --fail-on or above`,
		Example: `  ledgerd radar acme/api --level HIGH
  ledgerd radar acme/api --commit HEAD
  ledgerd radar acme/api --dry-run --fail-on HIGH`,
		Args: takes("ORG/REPO"),
		RunE: func(command *cobra.Command, args []string) error {
			if q.base != "" && !q.dryRun {
				return usagef("--base goes with --dry-run")
			}
			return p.withRepo(command, args, func(ctx context.Context, c *connection, name repoName) error {
				if q.dryRun {
					return p.foresee(ctx, c, name, q)
				}
				return p.showOverlaps(ctx, c, name, q)
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&q.filter.Commit, "commit", "", "only overlaps of this commit, a sha or a git `rev`")
	flags.StringVar(&q.filter.Branch, "branch", "", "only overlaps of this `branch`; with --dry-run, the one that "+
		"the commit is of")
	levelFlag(command, &q.filter.Level, "level", "only overlaps of exactly this level")
	levelFlag(command, &q.failOn, "fail-on", "exit with 4 where an overlap is of this level or above")
	flags.BoolVar(&q.dryRun, "dry-run", false, "ask about a commit of this work tree that is not pushed")
	flags.StringVar(&q.base, "base", "", "with --dry-run, "+baseUsage)
	limitFlag(command, &q.limit)
	return command
}

// baseUsage describes --base.
const baseUsage = "`rev` of the mainline that it left (default the branch of origin's HEAD, else the repo's " +
	"default branch)"

// levelFlag defines a flag that takes a level of overlaps.
func levelFlag(command *cobra.Command, value *radar.Level, name, usage string) {
	command.Flags().Var(
		&flagvalue.Parsed[radar.Level]{Value: value, Kind: "LEVEL", Parse: func(s string) (radar.Level, error) {
			level, err := radar.ParseLevel(s)
			if err != nil || level == radar.NoLevel {
				return level, fmt.Errorf("use LOW, MEDIUM or HIGH")
			}
			return level, nil
		}}, name, usage)
	flagvalue.Complete(command, name, "LOW", "MEDIUM", "HIGH")
}

// showOverlaps prints the open overlaps.
func (p *program) showOverlaps(ctx context.Context, c *connection, name repoName, q radarQuery) error {
	if q.filter.Commit != "" {
		var err error
		if q.filter.Commit, err = gitrepo.Find(ctx, q.filter.Commit); err != nil {
			return err
		}
	}
	pairs, err := client.Collect(c.Overlaps(ctx, name.org, name.repo, q.filter), q.limit)
	if err != nil {
		return err
	}
	if len(pairs) == 0 {
		return p.showNoOverlaps(ctx, c, name, q)
	}
	err = p.print(pairs, func() {
		p.tableOverlaps(pairs)
		p.tellTruncated(q.filter.Truncated(pairs))
	})
	return q.verdict(pairs, err)
}

// showNoOverlaps prints an empty list. Where that is about one commit or branch,
// it tells whether there are overlaps that are not kept.
func (p *program) showNoOverlaps(ctx context.Context, c *connection, name repoName, q radarQuery) error {
	if q.filter.Commit != "" && q.failOn != radar.NoLevel {
		if err := checkCompared(ctx, c, name, q.filter.Commit); err != nil {
			return err
		}
	}
	truncated, err := c.OverlapsTruncated(ctx, name.org, name.repo, q.filter)
	if err != nil {
		return err
	}
	return p.print([]ledger.RadarPair{}, func() {
		fmt.Fprintf(p.stdout, "no open overlaps in %s\n", name)
		if truncated {
			fmt.Fprintf(p.stdout, "there were more: %s\n", keptOverlaps())
		}
	})
}

// maxTruncated is how many of the commits are named that had more overlaps than
// are kept.
const maxTruncated = 3

// tellTruncated names the commits that had more overlaps than are kept.
func (p *program) tellTruncated(commits []ledger.RadarCommit) {
	if len(commits) == 0 {
		return
	}
	var names []string
	for _, c := range commits[:min(len(commits), maxTruncated)] {
		names = append(names, terminal.Short(c.SHA))
	}
	if rest := len(commits) - len(names); rest > 0 {
		names = append(names, terminal.Plural(int64(rest), "other commit"))
	}
	fmt.Fprintf(p.stdout, "and more of %s: %s\n", strings.Join(names, ", "), keptOverlaps())
}

// keptOverlaps tells which overlaps of a commit there are where it had more.
func keptOverlaps() string {
	return fmt.Sprintf("of one registration the strongest %d are kept", radar.MaxPairs)
}

// checkCompared refuses a commit that overlaps with nothing because the ledger
// does not know enough of it to compare it with others.
func checkCompared(ctx context.Context, c *connection, name repoName, sha string) error {
	commit, err := c.Commit(ctx, name.org, name.repo, sha)
	switch {
	case err != nil:
		return err
	case commit.Changes == nil:
		return fmt.Errorf("cannot tell what %s overlaps with: it is registered without a change record", name.at(commit.SHA))
	case commit.Branch == "":
		return fmt.Errorf("cannot tell what %s overlaps with: it is registered without a branch", name.at(commit.SHA))
	}
	return nil
}

// tableOverlaps writes a line for each pair.
func (p *program) tableOverlaps(pairs []ledger.RadarPair) {
	t := terminal.NewTable(p.stdout, "LEVEL", "COMMIT", "BRANCH", "AUTHOR", "WITH", "BRANCH", "AUTHOR", "PATH", "REASON")
	for _, pair := range pairs {
		later := pair.Commit
		t.Row(append([]any{pair.Level, terminal.Short(later.SHA), terminal.OrDash(later.Branch),
			terminal.OrDash(terminal.AuthorName(later.Author))}, withCells(pair, pair.Other)...)...)
	}
	t.Flush()
}

// withCells tells with whom and at what a commit overlaps.
func withCells(pair ledger.RadarPair, other ledger.RadarCommit) []any {
	author := terminal.OrDash(terminal.AuthorName(other.Author))
	if pair.SameAuthor {
		author += " (the same)"
	}
	if len(pair.Paths) == 0 {
		return []any{terminal.Short(other.SHA), terminal.OrDash(other.Branch), author, terminal.OrDash(""),
			terminal.OrDash("")}
	}
	strongest := pair.Paths[0]
	reason := string(strongest.Reason)
	if pair.PathsTotal > 1 {
		reason += fmt.Sprintf(", +%d more", pair.PathsTotal-1)
	}
	return []any{terminal.Short(other.SHA), terminal.OrDash(other.Branch), author, terminal.Clip(strongest.Path, 60),
		reason}
}

// verdict returns what --fail-on makes of the overlaps that were shown.
func (q radarQuery) verdict(pairs []ledger.RadarPair, err error) error {
	if err != nil || q.failOn == radar.NoLevel {
		return err
	}
	if slices.ContainsFunc(pairs, func(pair ledger.RadarPair) bool { return pair.Level >= q.failOn }) {
		return &exitError{status: exitNotReached}
	}
	return nil
}

// foresee prints what a commit of the work tree would overlap with.
func (p *program) foresee(ctx context.Context, c *connection, name repoName, q radarQuery) error {
	rev := cmp.Or(q.filter.Commit, "HEAD")
	local, err := registration.Read(ctx, c.Client, name.org, name.repo,
		gitrepo.Query{Rev: rev, Branch: q.filter.Branch, Base: q.base})
	if err != nil {
		return err
	}
	if local.ChangesErr != nil {
		return fmt.Errorf("cannot tell what %s overlaps with: %w", name.at(local.SHA), local.ChangesErr)
	}
	result, err := c.PreviewOverlaps(
		ctx, name.org, name.repo, ledger.RadarQuery{Commit: local.SHA, Registration: local.Registration})
	if err != nil {
		return err
	}
	q.narrow(&result)
	err = p.print(result, func() { p.showForeseen(name, local.SHA, result, q.filter.Level) })
	return q.verdict(result.Overlaps, err)
}

// narrow leaves of what is foreseen what was asked for, and in Truncated whether
// there is more of that: what was not answered is no stronger than the last that
// was.
func (q radarQuery) narrow(result *ledger.RadarResult) {
	if level := q.filter.Level; level != radar.NoLevel {
		if n := len(result.Overlaps); n > 0 && result.Overlaps[n-1].Level < level {
			result.Truncated = false
		}
		result.Overlaps = slices.DeleteFunc(result.Overlaps, func(pair ledger.RadarPair) bool { return pair.Level != level })
	}
	if q.limit > 0 && len(result.Overlaps) > q.limit {
		result.Overlaps, result.Truncated = result.Overlaps[:q.limit], true
	}
}

// showForeseen prints what a commit would overlap with, at that level or at any.
func (p *program) showForeseen(name repoName, sha string, result ledger.RadarResult, level radar.Level) {
	switch {
	case len(result.Overlaps) > 0:
		fmt.Fprintf(p.stdout, "%s, pushed now, would overlap with\n", name.at(sha))
		p.tableOthers(sha, result.Overlaps)
		if result.Truncated {
			fmt.Fprintf(p.stdout, "and more: these are the strongest %d\n", len(result.Overlaps))
		}
	case result.Truncated:
		fmt.Fprintf(p.stdout, "%s has no %s overlap among its strongest %d, and has more\n", name.at(sha), level,
			radar.MaxPairs)
	case level != radar.NoLevel:
		fmt.Fprintf(p.stdout, "%s has no %s overlap\n", name.at(sha), level)
	default:
		fmt.Fprintf(p.stdout, "%s overlaps with nothing in flight\n", name.at(sha))
	}
}

// tableOthers writes a line for each commit that one overlaps with.
func (p *program) tableOthers(sha string, pairs []ledger.RadarPair) {
	t := terminal.NewTable(p.stdout, "LEVEL", "WITH", "BRANCH", "AUTHOR", "PATH", "REASON")
	for _, pair := range pairs {
		other := pair.Other
		if other.SHA == sha {
			other = pair.Commit
		}
		t.Row(append([]any{pair.Level}, withCells(pair, other)...)...)
	}
	t.Flush()
}

// maxPushed is how many overlaps a push prints.
const maxPushed = 5

// showPushed prints, below what a push says, the strongest overlaps of the
// commit.
func (p *program) showPushed(name repoName, commit ledger.Commit) {
	if commit.Radar == nil || len(commit.Radar.Overlaps) == 0 {
		return
	}
	fmt.Fprintf(p.stdout, "overlaps with commits in flight: %s\n", countOverlaps(commit.CommitSummary))
	pairs := commit.Radar.Overlaps
	p.tableOthers(commit.SHA, pairs[:min(len(pairs), maxPushed)])
	if len(pairs) > maxPushed || commit.Radar.Truncated {
		which := "all of them"
		if commit.OverlapsTruncated {
			which = "those that are kept"
		}
		fmt.Fprintf(p.stdout, "%s: ledgerd radar %s --commit %s\n", which, name, terminal.Short(commit.SHA))
	}
}

// countOverlaps writes how many overlaps a commit has of each level, and that
// it had more than are kept.
func countOverlaps(c ledger.CommitSummary) string {
	counts := fmt.Sprintf("%d HIGH, %d MEDIUM, %d LOW", c.Overlaps["HIGH"], c.Overlaps["MEDIUM"], c.Overlaps["LOW"])
	if c.OverlapsTruncated {
		counts += ", and more: " + keptOverlaps()
	}
	return counts
}

// radarLine tells how a commit stands with the radar.
func radarLine(c ledger.Commit) string {
	flight := "not in flight"
	if c.InFlight {
		flight = "in flight"
	}
	return flight + ", overlaps: " + countOverlaps(c.CommitSummary)
}
