package record

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/ci"
	"github.com/ledgerd/ledgerd/cmd/internal/ci/report"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/display"
	"github.com/ledgerd/ledgerd/cmd/internal/registration"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// A radarQuery selects the overlaps to show.
type radarQuery struct {
	filter client.OverlapFilter
	base   string
	dryRun bool
	failOn radar.Level
	limit  int
	// fetch and summary are flags; job is the CI job.
	fetch   bool
	summary string
	job     *job
}

func newRadar(p *cli.Program) *cobra.Command {
	var q radarQuery
	command := p.Takes(&cobra.Command{
		Use:   "radar",
		Short: "List overlaps between commits in flight",
		Long: `Lists the overlaps between the commits of a repo that are in flight,
strongest first:
  HIGH    git cannot merge the two commits
  MEDIUM  both change the same file, and git can merge them
  LOW     both change files in the same directory
The commit that was registered later must rebase.

With --dry-run, shows what HEAD of this git work tree, or the commit given by
--commit, would overlap with if it were registered now. Nothing is written, and a
token with the scope read is enough.

In a CI job of a pull request, or with --fail-on, the commit is by default that
of the job. The overlaps are also in the summary of the step and in annotations,
if the CI system has them. With --dry-run, branch and base are those of the job,
and history that the clone lacks is fetched; see 'ledgerd ci'.

EXIT STATUS
  0  OK
  1  error: server unreachable, request refused, or the clone lacks the merge
     base; with --commit and --fail-on, the commit has no change record or branch
  2  usage error
  4  an overlap is at or above the level of --fail-on`,
		Example: `  ledgerd radar acme/api --level HIGH
  ledgerd radar acme/api --commit HEAD
  ledgerd radar acme/api --dry-run --fail-on HIGH`,
		RunE: func(command *cobra.Command, args []string) error {
			if q.base != "" && !q.dryRun {
				return cli.Usagef("--base requires --dry-run")
			}
			if q.fetch && !q.dryRun {
				return cli.Usagef("--fetch requires --dry-run")
			}
			git, err := q.complete(command)
			if err != nil {
				return err
			}
			q.job.log(p)
			return p.WithRepo(command, args, func(ctx context.Context, c *cli.Connection, name cli.RepoName) error {
				if q.dryRun {
					return dryRun(ctx, p, c, name, q, git)
				}
				return showOverlaps(ctx, p, c, name, q)
			})
		},
	}, cli.RepoArg)
	flags := command.Flags()
	flags.StringVar(&q.filter.Commit, "commit", "", "only overlaps of this commit, a sha or a git `rev`")
	flags.StringVar(&q.filter.Branch, "branch", "", "only overlaps of this `branch`; with --dry-run, the branch of "+
		"the commit")
	flagvalue.LevelVar(command, &q.filter.Level, "level", "only overlaps of exactly this level")
	flagvalue.LevelVar(command, &q.failOn, "fail-on", "exit with status 4 if an overlap is at or above this level")
	flags.BoolVar(&q.dryRun, "dry-run", false, "check a commit of this work tree without registering it")
	flags.StringVar(&q.base, "base", "", "with --dry-run, "+baseUsage)
	cli.LimitFlag(command, &q.limit)
	summaryFlag(command, &q.summary)
	fetchFlag(command, &q.fetch)
	flagvalue.RequireRev(command, "commit")
	return command
}

// baseUsage is the help of --base.
const baseUsage = "`rev` of the mainline, for the merge base (default the branch of origin's HEAD, else the " +
	"repo's default branch)"

// complete takes the commit from a CI job. It returns the query for a dry run. Without a dry
// run, the overlaps of the whole repo are listed, unless the job is about a pull request or
// may fail because of them.
func (q *radarQuery) complete(command *cobra.Command) (git gitrepo.Query, err error) {
	git = gitrepo.Query{Rev: cmp.Or(q.filter.Commit, "HEAD"), Branch: q.filter.Branch, Base: q.base, Fetch: q.fetch}
	flags := command.Flags()
	named := flags.Changed("commit")
	if q.job = detectJob(); q.dryRun {
		return git, q.job.complete(command.Context(), command, named, &git)
	}

	isOwn := q.job.isCI && (q.job.Event == ci.PullRequest || q.failOn != radar.NoLevel)
	if isOwn && !named && !flags.Changed("branch") {
		q.filter.Commit, err = q.job.commit(command.Context())
	}
	return git, err
}

// subject names the repo, or the commit whose overlaps are listed.
func (q radarQuery) subject(name cli.RepoName) string {
	if q.filter.Commit != "" {
		return name.At(q.filter.Commit)
	}
	return name.String()
}

// report shows the overlaps where the CI system shows results.
func (q radarQuery) report(p *cli.Program, subject string, pairs []ledger.RadarPair) {
	title := "No overlaps of " + subject
	if len(pairs) > 0 {
		title = terminal.Plural(int64(len(pairs)), "overlap") + " of " + subject
	}
	q.job.report(p, q.summary, report.Radar(title, q.filter.Commit, pairs, q.failOn))
}

// showOverlaps prints the open overlaps.
func showOverlaps(ctx context.Context, p *cli.Program, c *cli.Connection, name cli.RepoName, q radarQuery) error {
	if q.filter.Commit != "" {
		var err error
		if q.filter.Commit, err = gitrepo.Find(ctx, q.filter.Commit); err != nil {
			return err
		}
	}
	pairs, err := client.Collect(c.Overlaps(ctx, name.Org, name.Repo, q.filter), q.limit)
	if err != nil {
		return err
	}
	if len(pairs) == 0 {
		return showNoOverlaps(ctx, p, c, name, q)
	}
	err = p.Print(pairs, func() {
		display.Overlaps(p.Stdout, pairs)
		display.Truncated(p.Stdout, q.filter.Truncated(pairs))
	})
	q.report(p, q.subject(name), pairs)
	return q.verdict(pairs, err)
}

// showNoOverlaps prints an empty list. For a single commit or branch it also prints
// whether there are overlaps that are not stored.
func showNoOverlaps(ctx context.Context, p *cli.Program, c *cli.Connection, name cli.RepoName, q radarQuery) error {
	if q.filter.Commit != "" && q.failOn != radar.NoLevel {
		if err := checkCompared(ctx, c, name, q.filter.Commit); err != nil {
			return err
		}
	}
	truncated, err := c.OverlapsTruncated(ctx, name.Org, name.Repo, q.filter)
	if err != nil {
		return err
	}
	q.report(p, q.subject(name), nil)
	return p.Print([]ledger.RadarPair{}, func() {
		terminal.Printf(p.Stdout, "No open overlaps in %s\n", name)
		if truncated {
			terminal.Printf(p.Stdout, "There may be more: %s\n", display.StoredOverlaps())
		}
	})
}

// checkCompared returns an error if the radar skips the commit, because it was
// registered without a change record or without a branch.
func checkCompared(ctx context.Context, c *cli.Connection, name cli.RepoName, sha string) error {
	commit, err := c.Commit(ctx, name.Org, name.Repo, sha)
	switch {
	case err != nil:
		return err
	case commit.Changes == nil:
		return fmt.Errorf("cannot check overlaps of %s: it was registered without a change record", name.At(commit.SHA))
	case commit.Branch == "":
		return fmt.Errorf("cannot check overlaps of %s: it was registered without a branch", name.At(commit.SHA))
	}
	return nil
}

// verdict returns an error with the matching exit status if one of the overlaps is
// at or above the level of --fail-on.
func (q radarQuery) verdict(pairs []ledger.RadarPair, err error) error {
	if err != nil || q.failOn == radar.NoLevel {
		return err
	}
	if slices.ContainsFunc(pairs, func(pair ledger.RadarPair) bool { return pair.Level >= q.failOn }) {
		return &cli.ExitError{Status: cli.ExitNotReached}
	}
	return nil
}

// dryRun prints what a commit of the work tree would overlap with.
func dryRun(
	ctx context.Context, p *cli.Program, c *cli.Connection, name cli.RepoName, q radarQuery, git gitrepo.Query,
) error {
	local, err := registration.Read(ctx, c.Client, name.Org, name.Repo, git)
	if err != nil {
		return q.job.explain(err)
	}
	if local.ChangesErr != nil {
		return fmt.Errorf("cannot check overlaps of %s: %w", name.At(local.SHA), q.job.explain(local.ChangesErr))
	}
	result, err := c.PreviewOverlaps(
		ctx, name.Org, name.Repo, ledger.RadarQuery{Commit: local.SHA, Registration: local.Registration})
	if err != nil {
		return err
	}
	q.narrow(&result)
	err = p.Print(result, func() { display.DryRun(p.Stdout, name.String(), local.SHA, result, q.filter.Level) })
	q.report(p, name.At(local.SHA), result.Overlaps)
	return q.verdict(result.Overlaps, err)
}

// narrow applies --level and --limit to the result of a dry run. It sets Truncated
// if more overlaps match: those that the server left out are at most as severe as
// the last one.
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
