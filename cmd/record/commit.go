package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/display"
	"github.com/ledgerd/ledgerd/cmd/internal/registration"
	"github.com/ledgerd/ledgerd/cmd/internal/signing"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

func newCommit(p *cli.Program) *cobra.Command {
	return cli.Group("commit", "Register commits and show their states",
		newCommitRegister(p), newCommitShow(p), newCommitList(p), newCommitCorrect(p), newCommitWithdraw(p))
}

func newCommitShow(p *cli.Program) *cobra.Command {
	var transitions bool
	command := p.Takes(&cobra.Command{
		Use:   "show",
		Short: "Show a commit: its state, requirements and attestations",
		Long: `Shows the record of a commit, by default of HEAD. In a git work tree REV is any
revision; a full or abbreviated sha works everywhere. The record has the newest
100 attestations and transitions; 'ledgerd attestation list --commit REV' and
--transitions list all.`,
		Example: "  ledgerd commit show acme/api\n  ledgerd commit show acme/api adbc8813901b",
		RunE: p.OnArg(func(ctx context.Context, c *cli.Connection, name cli.RepoName, rev string) error {
			sha, err := gitrepo.Find(ctx, cmp.Or(rev, "HEAD"))
			if err != nil {
				return err
			}
			if transitions {
				return cli.PrintList(p, c.Transitions(ctx, name.Org, name.Repo, sha), 0, nil, display.TransitionRow)
			}
			commit, err := c.Commit(ctx, name.Org, name.Repo, sha)
			if client.CodeOf(err) == ledger.CodeNotFound && len(sha) >= 40 {
				if _, repoErr := c.Repo(ctx, name.Org, name.Repo); repoErr == nil {
					return fmt.Errorf("%w (to register it, use 'ledgerd commit register')", err)
				}
			}
			if err != nil {
				return err
			}
			return p.Print(commit, func() { display.Commit(p.Stdout, commit, time.Now()) })
		}),
	}, cli.RepoArg, cli.RevArg)
	command.Flags().BoolVar(&transitions, "transitions", false, "list all transitions of the commit instead, newest first")
	return command
}

func newCommitList(p *cli.Program) *cobra.Command {
	var filter client.CommitFilter
	var state ledger.State
	var limit int
	command := p.Takes(&cobra.Command{
		Use:     "list",
		Short:   "List the commits of a repo, newest first",
		Example: "  ledgerd commit list acme/api\n  ledgerd commit list acme/api --state PROMOTABLE --branch main -o json",
		RunE: func(command *cobra.Command, args []string) error {
			if command.Flags().Changed("state") {
				filter.State = &state
			}

			return p.WithRepo(command, args, func(ctx context.Context, c *cli.Connection, name cli.RepoName) error {
				columns := []string{"COMMIT", "STATE", "SINCE", "ATTESTED", "BRANCH", "AUTHOR", "MESSAGE"}
				return cli.PrintList(p, c.Commits(ctx, name.Org, name.Repo, filter), limit, columns,
					func(s ledger.CommitSummary) []any {
						return []any{ledger.Short(s.SHA), s.State, s.StateSince, s.Attested, terminal.OrDash(s.Branch),
							terminal.OrDash(s.Author.Name), s.Message}
					})
			})
		},
	}, cli.RepoArg)

	flags := command.Flags()
	flagvalue.StateVar(command, &state, "state", "only commits in this state")
	flags.StringVar(&filter.Branch, "branch", "", "only commits of this `branch`")
	flags.StringVar(&filter.Author, "author", "", "only commits of this author, by `name` or e-mail address")
	flags.StringVar(&filter.Text, "text", "", "only commits with this `text` in subject, branch or author, or SHA prefix")
	flags.BoolVar(&filter.InFlight, "in-flight", false, "only commits in flight")
	cli.LimitFlag(command, &limit)

	return command
}

func newCommitRegister(p *cli.Program) *cobra.Command {
	var r registerRequest
	command := p.Takes(&cobra.Command{
		Use:     "register",
		Aliases: []string{"push"}, // its name in the first release
		Short:   "Register a commit",
		Long: `Registers a commit of this git work tree, by default HEAD: the commit object,
which proves its author, committer, co-authors, message, parents and tree, its
branch, the paths and lines that it changes since its merge base with the
mainline, and the commits in flight that the merge base contains. The server gets
names, numbers, hashes and hunk headings, but no other content of files. An SSH
signature in the object by a trusted key is recorded as signed:commit.

Targets and changed paths only add up. An admin can correct them with
'commit correct'.

Prints the overlaps with other commits in flight, strongest first.

In a CI job, the commit is the head of the pull request, and branch, target and
base are those of the job, unless flags say otherwise; see 'ledgerd ci'. History
that the clone lacks is fetched. If that does not give a change record, nothing
is registered, except with --allow-incomplete.

A commit does not replace a tip of its branch that is built on it: it may have
been registered late. In a CI job about the commit, the tip is withdrawn and
replaced if origin has the branch at the commit, or if origin does not answer
and the job is the first of the push that has moved the branch back from the
tip. Otherwise the command says which tip stays, and how to replace it.

With --key, in a job of the mainline, the command also finds with git (2.38 or
later) which merges, squashes, rebases and updates of branches have happened
since the last time, on the mainline, in merge queues and on branches, and claims
them, the oldest first; see docs/evidence.md. REV must be among the first parents
of the repo's default branch, as origin has it. The command searches the heads of
branches that the clone or the ledger has, checks nothing out, and examines at
most 200 commits of the mainline and 500 heads, for at most 5 minutes. It claims
only what --squash-of and --merge-of of 'ledgerd attest' would accept. If the
policy has requirements with paths, it also signs which paths these commits and
the heads of branches change, for which the key needs --may 'changes:*'. If the
ledger stops responding, the command stops; run it again.`,
		Example: `  ledgerd commit register acme/api HEAD --key mainline.key
  ledgerd commit register acme/api
  ledgerd commit register acme/api feature/login --target release/2.x --base origin/release/2.x`,
		RunE: p.OnArg(func(ctx context.Context, c *cli.Connection, name cli.RepoName, rev string) error {
			return r.register(ctx, p, c, name, rev)
		}),
	}, cli.RepoArg, cli.RevArg)
	flags := command.Flags()
	flags.StringVar(&r.query.Branch, "branch", "", "`branch` of the commit (default the one that REV names, else the "+
		"current branch if it contains the commit)")
	flags.StringVar(&r.query.Target, "target", "", "target `branch` of the commit (default the repo's default branch)")
	flags.StringVar(&r.query.Base, "base", "", baseUsage)
	flags.BoolVar(&r.allowIncomplete, "allow-incomplete", false, "in a CI job, register the commit also without a change "+
		"record")
	fetchFlag(command, &r.query.Fetch)
	r.signerFiles.flags(command)
	return command
}

// A registerRequest holds the arguments of a registration.
type registerRequest struct {
	query           gitrepo.Query
	allowIncomplete bool
	signerFiles
}

// register registers a commit and, with a key, claims merges.
func (r *registerRequest) register(
	ctx context.Context, p *cli.Program, c *cli.Connection, name cli.RepoName, rev string,
) error {
	q := &r.query
	q.Rev = cmp.Or(rev, "HEAD")
	var signer *signing.Signer
	switch {
	case r.key == "" && r.cert != "":
		return cli.Usagef("--cert needs --key")
	case r.key != "":
		var err error
		if signer, err = r.load(p); err != nil {
			return err
		}
	}

	job := detectJob()
	if err := job.complete(ctx, p.Command, rev != "", q); err != nil {
		return err
	}
	job.log(p)
	local, err := registration.Read(ctx, c.Client, name.Org, name.Repo, *q)
	if err != nil {
		return job.explain(err)
	}
	if err := job.checkComplete(local, r.allowIncomplete); err != nil {
		return fmt.Errorf("%s was not registered: %w", name.At(local.SHA), err)
	}
	if job.hasNoBranch() {
		local.Branch = q.Branch
	}
	if signer == nil {
		return registerLocal(ctx, p, c, name, job, local)
	}

	claimer, err := newMergeClaimer(ctx, p, c, name, signer, local.SHA)
	if err != nil {
		return err
	}
	if err := registerLocal(ctx, p, c, name, job, local); err != nil {
		return err
	}
	ranges, err := claimer.claim(ctx, local.SHA, q.Fetch, job)
	return job.explain(errors.Join(err, claimer.signChanges(ctx, ranges)))
}

// registerLocal registers a commit that was read, and prints it.
func registerLocal(
	ctx context.Context, p *cli.Program, c *cli.Connection, name cli.RepoName, job *job, local gitrepo.Commit,
) error {
	commit, created, err := c.Register(ctx, name.Org, name.Repo, local.SHA, local.Registration)
	if err != nil {
		return err
	}
	gone, err := job.replaceTip(ctx, p, c, local, &commit)
	if err != nil {
		return err
	}

	warnOfGaps(p, local, commit, job)
	sendHistory(ctx, p, c, commit)
	return p.Confirm(commit, func() {
		if gone != "" {
			terminal.Printf(p.Stdout, "Withdrew %s: %s was moved back\n", name.At(gone), terminal.Clean(local.Branch))
		}
		verb := "Updated"
		if created {
			verb = "Registered"
		}
		terminal.Printf(p.Stdout, "%s %s: %s, %s\n", verb, name.At(local.SHA), local.Extent(), commit.State)
		display.Registered(p.Stdout, name.String(), commit)
	})
}

// warnOfGaps explains why the radar skips a commit that was just registered.
func warnOfGaps(p *cli.Program, local gitrepo.Commit, registered ledger.Commit, job *job) {
	if local.ChangesErr != nil {
		fmt.Fprintf(p.Stderr, "No change record: Conflict Radar skips this commit. Cause: %s\n", p.Describe(local.ChangesErr))
	}
	if registered.Branch == "" && !job.hasNoBranch() {
		fmt.Fprintln(p.Stderr, "No branch: Conflict Radar skips this commit. Pass --branch.")
	}
}

func newCommitWithdraw(p *cli.Program) *cobra.Command {
	var branch string
	command := p.Takes(&cobra.Command{
		Use:   "withdraw",
		Short: "Take the commit of an abandoned branch out of flight",
		Long: `Withdraws a commit, by default HEAD: the radar stops comparing other commits
with it, and its overlaps are closed. With --branch, withdraws the commit of the
branch that is in flight; otherwise this is a no-op. To bring a commit
back into flight, register it again.`,
		Example: `  ledgerd commit withdraw acme/api adbc8813901b
  ledgerd commit withdraw acme/api --branch feature/login`,
		RunE: p.OnArg(func(ctx context.Context, c *cli.Connection, name cli.RepoName, rev string) error {
			if branch != "" && rev != "" {
				return cli.Usagef("REV and --branch are mutually exclusive")
			}
			if branch != "" {
				return withdrawBranch(ctx, p, c, name, branch)
			}
			sha, err := gitrepo.Find(ctx, cmp.Or(rev, "HEAD"))
			if err != nil {
				return err
			}
			return withdraw(ctx, p, c, name, sha)
		}),
	}, cli.RepoArg, cli.RevArg)

	command.Flags().StringVar(&branch, "branch", "", "withdraw the commit of this `branch`")
	p.YesFlag(command)
	return command
}

func withdraw(ctx context.Context, p *cli.Program, c *cli.Connection, name cli.RepoName, sha string) error {
	ask := func() (string, error) { return fmt.Sprintf("Take %s out of flight?", name.At(sha)), nil }
	if err := p.Ask(ask); err != nil {
		return err
	}
	commit, err := c.Withdraw(ctx, name.Org, name.Repo, sha)
	if err != nil {
		return err
	}
	return p.Confirm(commit, func() { terminal.Printf(p.Stdout, "Withdrew %s\n", name.At(commit.SHA)) })
}

// withdrawBranch withdraws the commit of a branch that is in flight, if any.
func withdrawBranch(ctx context.Context, p *cli.Program, c *cli.Connection, name cli.RepoName, branch string) error {
	filter := client.CommitFilter{Branch: branch, InFlight: true}
	tips, err := client.Collect(c.Commits(ctx, name.Org, name.Repo, filter), 1)
	if err != nil {
		return err
	}
	if len(tips) == 0 {
		return p.Confirm((*ledger.Commit)(nil),
			func() { terminal.Printf(p.Stdout, "Branch %s has no commit in flight\n", terminal.Clean(branch)) })
	}
	return withdraw(ctx, p, c, name, tips[0].SHA)
}

func newCommitCorrect(p *cli.Program) *cobra.Command {
	var targets []string
	var allPaths bool
	command := p.Takes(&cobra.Command{
		Use:   "correct",
		Short: "Correct the targets or the changes that were registered for a commit",
		Long: `Replaces what registrations have claimed of a commit, by default HEAD, and
derives its state again. Registrations only add targets and changed paths. A
correction needs a token with the scope admin, and is listed in the commit's
record.`,
		Example: `  ledgerd commit correct acme/api adbc8813901b --target main
  ledgerd commit correct acme/api HEAD --target main,release/2.x --all-paths`,
		RunE: func(command *cobra.Command, args []string) error {
			var change ledger.CommitCorrection
			if command.Flags().Changed("target") {
				change.Targets = &targets
			}
			if allPaths {
				change.Changes = new([]radar.Change)
			}
			if change.Targets == nil && change.Changes == nil {
				return cli.Usagef("nothing to correct: use --target or --all-paths")
			}
			return p.OnArg(func(ctx context.Context, c *cli.Connection, name cli.RepoName, rev string) error {
				sha, err := gitrepo.Find(ctx, cmp.Or(rev, "HEAD"))
				if err != nil {
					return err
				}
				commit, err := c.Correct(ctx, name.Org, name.Repo, sha, change)
				if err != nil {
					return err
				}
				return p.Confirm(commit, func() {
					terminal.Printf(p.Stdout, "Corrected %s: %s\n", name.At(commit.SHA), commit.State)
				})
			})(command, args)
		},
	}, cli.RepoArg, cli.RevArg)

	flags := command.Flags()
	flags.StringSliceVar(&targets, "target", nil, "replace all targets with these `branches`, newest last; "+
		"\"\" leaves the default branch")
	flags.BoolVar(&allPaths, "all-paths", false, "forget the change records, so that the commit may change any path")
	return command
}
