package cmd

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/display"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/internal/registration"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

func newCommit(p *program) *cobra.Command {
	return group("commit", "Register commits and show their states",
		newCommitPush(p), newCommitShow(p), newCommitList(p), newCommitCorrect(p), newCommitWithdraw(p))
}

func newCommitShow(p *program) *cobra.Command {
	var transitions bool
	command := &cobra.Command{
		Use:   "show ORG/REPO [REV]",
		Short: "Show a commit: its state, requirements and attestations",
		Long: `Shows the record of a commit, by default of HEAD. In a git work tree REV is any
revision; a full or abbreviated sha works everywhere. The record has the newest
100 attestations and transitions; 'ledgerd attestation list --commit REV' and
--transitions list all.`,
		Example: "  ledgerd commit show acme/api\n  ledgerd commit show acme/api adbc8813901b",
		Args:    takes("ORG/REPO", "[REV]"),
		RunE: func(command *cobra.Command, args []string) error {
			return p.withRepo(command, args, func(ctx context.Context, c *connection, name repoName) error {
				sha, err := gitrepo.Find(ctx, revOf(args))
				if err != nil {
					return err
				}
				if transitions {
					return printList(p, c.Transitions(ctx, name.org, name.repo, sha), 0, nil, display.TransitionRow)
				}
				commit, err := c.Commit(ctx, name.org, name.repo, sha)
				if err != nil {
					return err
				}
				return p.print(commit, func() { display.Commit(p.stdout, commit, time.Now()) })
			})
		},
	}
	command.Flags().BoolVar(&transitions, "transitions", false, "list all transitions of the commit instead, newest first")
	return command
}

func newCommitList(p *program) *cobra.Command {
	var filter client.CommitFilter
	var state ledger.State
	var limit int
	command := &cobra.Command{
		Use:     "list ORG/REPO",
		Short:   "List the commits of a repo, newest first",
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
	flagvalue.StateVar(command, &state, "state", "only commits in this state")
	flags.StringVar(&filter.Branch, "branch", "", "only commits of this `branch`")
	flags.StringVar(&filter.Author, "author", "", "only commits of this author, by `name` or e-mail address")
	flags.BoolVar(&filter.InFlight, "in-flight", false, "only commits in flight")
	limitFlag(command, &limit)

	return command
}

func newCommitPush(p *program) *cobra.Command {
	var q gitrepo.Query
	command := &cobra.Command{
		Use:   "push ORG/REPO [REV]",
		Short: "Register a commit",
		Long: `Registers a commit of this git work tree, by default HEAD: the commit object,
which proves its author, committer, co-authors, message, parents and tree, its
branch, the paths and lines that it changes since its merge base with the
mainline, and the commits in flight that the merge base contains. The server gets
names, numbers, hashes and hunk headings, but no other content of files. An SSH
signature in the object by a trusted key is recorded as signed:commit.

Targets and changed paths only add up. An admin can correct them with
'commit correct'.

Prints the overlaps with other commits in flight, strongest first.`,
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
					verb := "Updated"
					if created {
						verb = "Registered"
					}
					fmt.Fprintf(p.stdout, "%s %s: %s, %s\n", verb, name.at(local.SHA), local.Extent(), commit.State)
					display.Pushed(p.stdout, name.String(), commit)
				})
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&q.Branch, "branch", "", "`branch` of the commit (default the one that REV names, else the current "+
		"branch if it contains the commit)")
	flags.StringVar(&q.Target, "target", "", "target `branch` of the commit (default the repo's default branch)")
	flags.StringVar(&q.Base, "base", "", baseUsage)
	return command
}

// warnOfGaps explains why the radar skips a commit that was just pushed.
func (p *program) warnOfGaps(local gitrepo.Commit, pushed ledger.Commit) {
	if local.ChangesErr != nil {
		fmt.Fprintf(p.stderr, "No change record: Conflict Radar skips this commit. Cause: %s\n", p.describe(local.ChangesErr))
	}
	if pushed.Branch == "" {
		fmt.Fprintln(p.stderr, "No branch: Conflict Radar skips this commit. Pass --branch.")
	}
}

// revOf returns the second argument, the revision, or HEAD if it is missing.
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
		Short: "Take the commit of an abandoned branch out of flight",
		Long: `Withdraws a commit, by default HEAD: the radar stops comparing other commits
with it, and its overlaps are closed. With --branch, withdraws the commit of the
branch that is in flight; otherwise this is a no-op. To bring a commit
back into flight, push it again.`,
		Example: `  ledgerd commit withdraw acme/api adbc8813901b
  ledgerd commit withdraw acme/api --branch feature/login`,
		Args: takes("ORG/REPO", "[REV]"),
		RunE: func(command *cobra.Command, args []string) error {
			if branch != "" && len(args) > 1 {
				return usagef("REV and --branch are mutually exclusive")
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

	command.Flags().StringVar(&branch, "branch", "", "withdraw the commit of this `branch`")
	return command
}

func (p *program) withdraw(ctx context.Context, c *connection, name repoName, sha string) error {
	commit, err := c.Withdraw(ctx, name.org, name.repo, sha)
	if err != nil {
		return err
	}
	return p.print(commit, func() { fmt.Fprintf(p.stdout, "Withdrew %s\n", name.at(commit.SHA)) })
}

// withdrawBranch withdraws the commit of a branch that is in flight, if any.
func (p *program) withdrawBranch(ctx context.Context, c *connection, name repoName, branch string) error {
	filter := client.CommitFilter{Branch: branch, InFlight: true}
	tips, err := client.Collect(c.Commits(ctx, name.org, name.repo, filter), 1)
	if err != nil {
		return err
	}
	if len(tips) == 0 {
		return p.print((*ledger.Commit)(nil),
			func() { fmt.Fprintf(p.stdout, "Branch %s has no commit in flight\n", terminal.Clean(branch)) })
	}
	return p.withdraw(ctx, c, name, tips[0].SHA)
}

func newCommitCorrect(p *program) *cobra.Command {
	var targets []string
	var allPaths bool
	command := &cobra.Command{
		Use:   "correct ORG/REPO REV",
		Short: "Correct the targets or the changes that were registered for a commit",
		Long: `Replaces what registrations have claimed of a commit, and derives its state
again. Registrations only add targets and changed paths. A correction needs a
token with the scope admin, and is listed in the commit's record.`,
		Example: `  ledgerd commit correct acme/api adbc8813901b --target main
  ledgerd commit correct acme/api HEAD --target main,release/2.x --all-paths`,
		Args: takes("ORG/REPO", "REV"),
		RunE: func(command *cobra.Command, args []string) error {
			var change ledger.CommitCorrection
			if command.Flags().Changed("target") {
				change.Targets = &targets
			}
			if allPaths {
				change.Changes = new([]radar.Change)
			}
			if change.Targets == nil && change.Changes == nil {
				return usagef("nothing to correct: use --target or --all-paths")
			}
			return p.withRepo(command, args, func(ctx context.Context, c *connection, name repoName) error {
				sha, err := gitrepo.Find(ctx, args[1])
				if err != nil {
					return err
				}
				commit, err := c.Correct(ctx, name.org, name.repo, sha, change)
				if err != nil {
					return err
				}
				return p.print(commit, func() {
					fmt.Fprintf(p.stdout, "Corrected %s: %s\n", name.at(commit.SHA), commit.State)
				})
			})
		},
	}

	flags := command.Flags()
	flags.StringSliceVar(&targets, "target", nil, "replace all targets with these `branches`, newest last; "+
		"\"\" leaves the default branch")
	flags.BoolVar(&allPaths, "all-paths", false, "forget the change records, so that the commit may change any path")
	return command
}
