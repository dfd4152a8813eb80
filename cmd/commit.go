package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/internal/registration"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

func newCommit(p *program) *cobra.Command {
	return group("commit", "Register commits and see how far they have come",
		newCommitPush(p), newCommitShow(p), newCommitList(p), newCommitWithdraw(p))
}

func newCommitShow(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "show ORG/REPO [REV]",
		Short: "Show a commit, what it still needs and what is attested about it",
		Long: `Shows the record of a commit, HEAD where none is named. In a git work tree REV
is any revision; a sha or the beginning of one works everywhere.`,
		Example: "  ledgerd commit show acme/api\n  ledgerd commit show acme/api adbc8813901b",
		Args:    takes("ORG/REPO", "[REV]"),
		RunE: func(command *cobra.Command, args []string) error {
			return p.withRepo(command, args, func(ctx context.Context, c *connection, name repoName) error {
				sha, err := gitrepo.Find(ctx, revOf(args))
				if err != nil {
					return err
				}
				commit, err := c.Commit(ctx, name.org, name.repo, sha)
				if err != nil {
					return err
				}
				return p.print(commit, func() { p.showCommit(commit) })
			})
		},
	}
}

func (p *program) showCommit(c ledger.Commit) {
	t := terminal.NewTable(p.stdout)
	t.Row("commit", c.SHA)
	t.Row("state", fmt.Sprintf("%s since %s", c.State, c.StateSince))
	t.Row("branch", fmt.Sprintf("%s, meant for %s", terminal.OrDash(c.Branch), terminal.OrDash(c.Target)))
	t.Row("author", fmt.Sprintf("%s <%s>", terminal.OrDash(c.Author.Name), terminal.OrDash(c.Author.Email)))
	t.Row("message", terminal.OrDash(c.Message))
	t.Row("changes", terminal.Plural(int64(len(c.Changes)), "path"))
	t.Row("radar", radarLine(c))
	t.Flush()

	fmt.Fprintf(p.stdout, "\nrequirements (policy version %d)\n", c.PolicyVersion)
	p.showRequirements(c.Requirements)

	fmt.Fprintf(p.stdout, "\n%s\n", terminal.Plural(c.Attested, "attestation"))
	t = terminal.NewTable(p.stdout)
	t.Indent = "  "
	for _, a := range c.Attestations {
		t.Row(a.RecordedAt, a.Predicate, a.Result.Status, a.Identity, a.ID)
	}
	t.Flush()

	fmt.Fprintf(p.stdout, "\n%s\n", terminal.Plural(int64(len(c.Transitions)), "transition"))
	t = terminal.NewTable(p.stdout)
	t.Indent = "  "
	for _, m := range c.Transitions {
		t.Row(m.At, fmt.Sprintf("%s -> %s", m.From, m.To), fmt.Sprintf("by %s %s", m.Cause.Type, m.Cause.ID))
	}
	t.Flush()
}

// showRequirements writes a line for each requirement of a policy.
func (p *program) showRequirements(requirements []ledger.RequirementStatus) {
	t := terminal.NewTable(p.stdout, "", "STATE", "PREDICATE", "HAVE", "REASON")
	for _, r := range requirements {
		mark := "✗"
		switch {
		case !r.Applies:
			mark = "-"
		case r.Met:
			mark = "✓"
		}
		have := "-" // the radar's counts nobody
		if r.Need > 0 {
			have = fmt.Sprintf("%d of %d", r.Have, r.Need)
		}
		t.Row(mark, r.State, r.Predicate, have, r.Reason)
	}
	t.Flush()
}

func newCommitList(p *program) *cobra.Command {
	var filter client.CommitFilter
	var state ledger.State
	var limit int
	command := &cobra.Command{
		Use:     "list ORG/REPO",
		Short:   "List the commits of a repo, the newest first",
		Example: "  ledgerd commit list acme/api\n  ledgerd commit list acme/api --state PROMOTABLE --branch main -o json",
		Args:    takes("ORG/REPO"),
		RunE: func(command *cobra.Command, args []string) error {
			if command.Flags().Changed("state") {
				filter.State = &state
			}
			return p.withRepo(command, args, func(ctx context.Context, c *connection, name repoName) error {
				columns := []string{"COMMIT", "STATE", "SINCE", "ATTESTED", "BRANCH", "AUTHOR", "MESSAGE"}
				return printList(p, c.Commits(ctx, name.org, name.repo, filter), limit, columns,
					func(s ledger.CommitSummary) []any {
						return []any{terminal.Short(s.SHA), s.State, s.StateSince, s.Attested, terminal.OrDash(s.Branch),
							terminal.OrDash(s.Author.Name), terminal.Clip(terminal.OneLine(s.Message), 50)}
					})
			})
		},
	}
	flags := command.Flags()
	stateFlag(command, &state, "only commits in this state")
	flags.StringVar(&filter.Branch, "branch", "", "only commits of this `branch`")
	flags.StringVar(&filter.Author, "author", "", "only commits of this author, by `name` or e-mail address")
	flags.BoolVar(&filter.InFlight, "in-flight", false, "only commits that the radar compares others with")
	limitFlag(command, &limit)
	return command
}

func newCommitPush(p *program) *cobra.Command {
	var q gitrepo.Query
	command := &cobra.Command{
		Use:   "push ORG/REPO [REV]",
		Short: "Tell the ledger of a commit of this git work tree",
		Long: `Tells the ledger of a commit, HEAD where none is named: its author, message,
parents and branch, which paths and lines it changes against the point where it
left the mainline, and which commits in flight that point holds already. The
ledger gets names, numbers and hashes, never content.

It prints which other commits in flight the commit overlaps with, the strongest
first.`,
		Example: `  ledgerd commit push acme/api
  ledgerd commit push acme/api feature/login --target release/2.x --base origin/release/2.x`,
		Args: takes("ORG/REPO", "[REV]"),
		RunE: func(command *cobra.Command, args []string) error {
			q.Rev = revOf(args)
			return p.withRepo(command, args, func(ctx context.Context, c *connection, name repoName) error {
				local, err := registration.Read(ctx, c.Client, name.org, name.repo, q)
				if err != nil {
					return err
				}
				commit, created, err := c.Register(ctx, name.org, name.repo, local.SHA, local.Registration)
				if err != nil {
					return err
				}
				p.warnOfGaps(local, commit)
				return p.print(commit, func() {
					verb := "completed"
					if created {
						verb = "registered"
					}
					fmt.Fprintf(p.stdout, "%s %s: %s, %s\n", verb, name.at(local.SHA), local.Extent(), commit.State)
					p.showPushed(name, commit)
				})
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&q.Branch, "branch", "", "`branch` of the commit (default the one it stands on)")
	flags.StringVar(&q.Target, "target", "", "`branch` that the commit is meant for (default the repo's default branch)")
	flags.StringVar(&q.Base, "base", "", baseUsage)
	return command
}

// warnOfGaps tells why the radar leaves out a commit that was just pushed.
func (p *program) warnOfGaps(local gitrepo.Commit, pushed ledger.Commit) {
	if local.ChangesErr != nil {
		fmt.Fprintf(p.stderr, "the commit was pushed without a change record, so the radar does not compare it: %s\n",
			describe(local.ChangesErr))
	}
	if pushed.Branch == "" {
		fmt.Fprintln(p.stderr,
			"the commit was pushed without a branch, so the radar does not compare it: name the branch with --branch")
	}
}

// revOf returns the revision that is the second argument, HEAD where there is
// none.
func revOf(args []string) string {
	if len(args) > 1 {
		return args[1]
	}
	return "HEAD"
}

func newCommitWithdraw(p *program) *cobra.Command {
	var branch string
	command := &cobra.Command{
		Use:   "withdraw ORG/REPO [REV]",
		Short: "Take a commit out of flight, because its branch is given up",
		Long: `Takes a commit, HEAD where none is named, out of flight: the radar compares
no other commit with it any more, and its overlaps end. With --branch it is the
commit that the branch has in flight; if there is none, nothing happens. Pushing
the commit again brings it back.`,
		Example: `  ledgerd commit withdraw acme/api adbc8813901b
  ledgerd commit withdraw acme/api --branch feature/login`,
		Args: takes("ORG/REPO", "[REV]"),
		RunE: func(command *cobra.Command, args []string) error {
			if branch != "" && len(args) > 1 {
				return usagef("name a commit or a --branch, not both")
			}
			return p.withRepo(command, args, func(ctx context.Context, c *connection, name repoName) error {
				if branch != "" {
					return p.withdrawBranch(ctx, c, name, branch)
				}
				sha, err := gitrepo.Find(ctx, revOf(args))
				if err != nil {
					return err
				}
				return p.withdraw(ctx, c, name, sha)
			})
		},
	}
	command.Flags().StringVar(&branch, "branch", "", "the commit that this `branch` has in flight")
	return command
}

func (p *program) withdraw(ctx context.Context, c *connection, name repoName, sha string) error {
	commit, err := c.Withdraw(ctx, name.org, name.repo, sha)
	if err != nil {
		return err
	}
	return p.print(commit, func() { fmt.Fprintf(p.stdout, "%s is out of flight\n", name.at(commit.SHA)) })
}

// withdrawBranch withdraws what a branch has in flight.
func (p *program) withdrawBranch(ctx context.Context, c *connection, name repoName, branch string) error {
	tips, err := c.CommitsPage(ctx, name.org, name.repo, client.CommitFilter{Branch: branch, InFlight: true},
		client.Query{Limit: 1})
	if err != nil {
		return err
	}
	if len(tips.Data) == 0 {
		return p.print((*ledger.Commit)(nil),
			func() { fmt.Fprintf(p.stdout, "the branch %s has nothing in flight\n", terminal.Clean(branch)) })
	}
	return p.withdraw(ctx, c, name, tips.Data[0].SHA)
}
