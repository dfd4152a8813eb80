package record

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/await"
	"github.com/ledgerd/ledgerd/cmd/internal/ci/report"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/display"
	"github.com/ledgerd/ledgerd/cmd/internal/registration"
	"github.com/ledgerd/ledgerd/cmd/internal/signing"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

// A gate checks whether a commit has reached a state, once or repeatedly for some
// time.
type gate struct {
	repo     cli.RepoName // without a repo for an artifact of any repo of the org
	rev      string
	artifact string // a digest; empty for a commit
	target   string
	state    ledger.State
	// environment is the one to deploy to, or with isRunning the one in which the commit runs.
	environment string
	isRunning   bool
	wait        time.Duration
	summary     string // file name
	job         *job
}

func newGate(p *cli.Program) *cobra.Command {
	var g gate
	var artifact string
	command := p.Takes(&cobra.Command{
		Use:   "gate",
		Short: "Check whether a commit has reached a state (sets the exit status)",
		Long: `Prints the requirements of the policy for a commit and which of them are met. The
exit status says whether the commit has reached the state; run this before a
deployment. With --wait it polls until the commit has reached the state.

A state is reached if the evidence gives it now. A commit that was deployed stays
DEPLOYED when a scan fails or a key is revoked afterwards, but has reached
PROMOTABLE only if its standing is PROMOTABLE. --state DEPLOYED asks whether it
is deployed, whatever its standing. A commit that is not in the ledger has
reached none; with -o json its state is null.

With --env, the gate is also shut if the commit was rolled back from this
environment, until an exception for rollback:ENV or 'ledgerd deploy ENV --again'.
If the policy says delivery: true for the environment, it is shut, too, while a
commit that a deployment would ship is not covered: it lists these commits, why,
and what to do. Without --env, it says how many there are, and stays open. With
--running, the commit is the one that runs there.

A commit is meant for the repo's default branch and for every target that was
ever registered. With --target, only the requirements for that branch count; with
-o json, target_state is its state. A DEPLOYED commit is DEPLOYED for all.

In a CI job, the commit is by default the head of the pull request or the commit
of the job, and the result is also in the summary of the step and in annotations,
if the CI system has them; see 'ledgerd ci'.

With --artifact, the commits are those that the artifact was built from, as
recorded statements say, in any repo of ORG or in ORG/REPO. All of them must have
reached the state. If none is known, or none of the statements counts, it is not
reached.

EXIT STATUS
  0  reached
  1  error (server unreachable or request refused)
  2  usage error
  4  not reached
  5  not reached within --wait`,
		Example: `  ledgerd gate acme/api --commit HEAD --state PROMOTABLE
  ledgerd gate acme/api --commit HEAD --state PROMOTABLE --env prod --wait 10m
  ledgerd gate acme/api --state PROMOTABLE --env prod --running
  ledgerd gate acme/api --commit HEAD --state PROMOTABLE --target release/2.x
  ledgerd gate acme --artifact ghcr.io/acme/api@sha256:2892… --state PROMOTABLE --env prod`,
		RunE: func(command *cobra.Command, args []string) (err error) {
			g.job = detectJob()
			if command.Flags().Changed("env") { // a wrong name would have no rollbacks
				if g.environment, err = ledger.ParseEnvironment(g.environment); err != nil {
					return cli.Usagef("invalid --env: %w", err)
				}
			}
			if g.isRunning && g.environment == "" {
				return cli.Usagef("--running needs --env")
			}
			isArtifact := command.Flags().Changed("artifact") // an empty one is a mistake
			if !isArtifact {
				if g.repo, _, err = p.Repo(command, args); err != nil {
					return err
				}
				p.NoteRepo(g.repo)
				return checkCommit(p, command, g)
			}
			if g.artifact, err = ledger.ParseArtifact(artifact); err != nil {
				return cli.Usagef("invalid --artifact: %w", err)
			}
			return gateArtifact(p, command, args, g)
		},
	}, cli.RepoArg)
	flags := command.Flags()
	flags.StringVar(&g.rev, "commit", "HEAD", "commit to check, a sha or a git `rev`")
	flags.StringVar(&artifact, "artifact", "", "check the commits of an artifact: a `digest`, or a reference with one")
	flagvalue.StateVar(command, &g.state, "state", "required state")
	flags.StringVar(&g.environment, "env", "", "`name` of the environment to deploy to: shut if the commit was rolled "+
		"back from it, or ships what is not covered")
	flags.BoolVar(&g.isRunning, "running", false, "with --env: check the commit that runs there")
	flags.StringVar(&g.target, "target", "", "evaluate the requirements for this target `branch` alone")
	flags.Var(flagvalue.Duration(&g.wait), "wait", "how long to wait for the state")
	summaryFlag(command, &g.summary)
	flagvalue.Require(command, "state")
	flagvalue.Exclude(command, "artifact", "commit")
	flagvalue.Exclude(command, "artifact", "target")
	flagvalue.Exclude(command, "artifact", "running")
	flagvalue.Exclude(command, "running", "commit")
	flagvalue.RequireRev(command, "commit")
	return command
}

func checkCommit(p *cli.Program, command *cobra.Command, g gate) error {
	ctx, stop := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	l, err := p.Locate(command)
	if err != nil {
		return err
	}

	sha := ""
	if !g.isRunning {
		if sha, err = g.findCommit(ctx, p, command); err != nil {
			return err
		}
	}

	return l.Use(ctx, func(ctx context.Context, c *cli.Connection) error {
		if g.isRunning {
			if sha, err = running(ctx, c, g.repo, g.environment); err != nil {
				return err
			}
		}
		commit, err := awaitState(ctx, p, c, g, sha)
		if err != nil {
			return err
		}
		defer g.noteDeliveries(ctx, p, c, commit)
		return gateResult(p, g, sha, commit)
	})
}

// findCommit returns the commit to check.
func (g gate) findCommit(ctx context.Context, p *cli.Program, command *cobra.Command) (sha string, err error) {
	if !command.Flags().Changed("commit") {
		if g.rev, err = g.job.commit(ctx); err != nil {
			return "", err
		}
		g.job.log(p)
	}
	return gitrepo.Find(ctx, g.rev)
}

// shutBy returns the environment whose rollbacks and deliveries shut the gate, or an empty text.
func (g gate) shutBy() string {
	if g.isRunning {
		return ""
	}
	return g.environment
}

// missed returns the exit status if the state is not reached.
func (g gate) missed() int {
	if g.wait > 0 {
		return cli.ExitGaveUp
	}
	return cli.ExitNotReached
}

// gateResult prints whether the commit has reached the state, and returns an error
// with the exit status if not. commit is nil if it is not in the ledger.
func gateResult(p *cli.Program, g gate, sha string, commit *ledger.Commit) error {
	if commit == nil {
		unknown := struct {
			Org   string        `json:"org"`
			Repo  string        `json:"repo"`
			SHA   string        `json:"sha"`
			State *ledger.State `json:"state"`
		}{g.repo.Org, g.repo.Repo, sha, nil}
		if err := p.Print(unknown, func() {}); err != nil {
			return err
		}
		title := fmt.Sprintf("commit %s not found, so it has not reached %s", g.repo.At(sha), g.state)
		g.job.report(p, g.summary, report.Gate(title, nil, g.state, ""))
		return cli.Exitf(g.missed(), "%s (to register it, use 'ledgerd commit register')", title)
	}

	isReached := commit.Gate(g.state, g.shutBy()).Reached
	title := g.title(commit, isReached)
	err := p.Print(commit, func() { g.explain(p.Stdout, title, commit) })
	g.job.report(p, g.summary, report.Gate(title, commit, g.state, g.shutBy()))
	if err == nil && !isReached {
		return &cli.ExitError{Status: g.missed()}
	}
	return err
}

// title says what the state of the commit is, and whether that opens the gate.
func (g gate) title(commit *ledger.Commit, isReached bool) string {
	verdict := fmt.Sprintf("✗ (%s required)", g.state)
	if isReached {
		verdict = "✓"
	}
	return fmt.Sprintf("%s is %s %s", g.repo.At(commit.SHA), g.describeState(commit), verdict)
}

// explain prints the title, and what opens the gate for the commit or shuts it.
func (g gate) explain(w io.Writer, title string, commit *ledger.Commit) {
	fmt.Fprintln(w, title)
	display.RolledBack(w, commit.RolledBack)
	display.Shipped(w, g.repo.String(), commit.SHA, commit.Delivery)
	display.Requirements(w, commit.Requirements, time.Now())
}

// noteTimeout limits how long noteDeliveries takes.
const noteTimeout = 10 * time.Second

// noteDeliveries says of which environments the gate would be shut, since a deployment would ship what is not covered,
// if no environment was asked for. It is best effort: the gate has its answer. commit is nil if it is not in the
// ledger.
func (g gate) noteDeliveries(ctx context.Context, p *cli.Program, c *cli.Connection, commit *ledger.Commit) {
	if commit == nil || g.environment != "" || p.Global.Quiet {
		return
	}
	ctx, stop := context.WithTimeout(ctx, noteTimeout)
	defer stop()
	for _, g.environment = range commit.Deliveries {
		asked, err := lookUp(ctx, c, g, commit.SHA)
		if err != nil || asked == nil || asked.Delivery == nil || asked.Delivery.Uncovered == 0 {
			continue
		}
		terminal.Printf(p.Hints(), "NOTE: %s (see ledgerd gate %s --commit %s --state %s --env %s)\n",
			asked.Delivery.Summary(), g.repo, ledger.Short(commit.SHA), g.state, g.environment)
	}
}

// awaitState returns the commit. With a wait, it first asks the gate until the commit has reached
// the state or the wait is over; temporary errors, such as an unreachable server, are then retried.
func awaitState(ctx context.Context, p *cli.Program, c *cli.Connection, g gate, sha string) (*ledger.Commit, error) {
	if g.wait > 0 {
		if g.shutBy() != "" {
			_, _ = lookUp(ctx, c, g, sha) // so that the ledger knows what is shipped; an error is that of what follows
		}
		look := func(ctx context.Context) (*ledger.Gate, bool, error) {
			answer, err := g.ask(ctx, c, sha)
			return answer, answer != nil && answer.Reached, err
		}
		_, err := await.Until(ctx, waitFor(p, g), look, func(answer *ledger.Gate) string {
			return g.repo.At(sha) + " is " + g.answeredState(answer)
		})
		if err != nil {
			return nil, err
		}
	}
	return lookUp(ctx, c, g, sha)
}

// ask asks the gate of a commit. The answer is nil if the commit is not in the ledger.
func (g gate) ask(ctx context.Context, c *cli.Connection, sha string) (*ledger.Gate, error) {
	if err := c.Settle(ctx); err != nil {
		return nil, err
	}
	answer, err := c.Gate(ctx, g.repo.Org, g.repo.Repo, sha, g.state, g.target, g.shutBy())
	if err == nil {
		return &answer, nil
	}
	return nil, g.unlessUnknown(ctx, c, err)
}

func waitFor(p *cli.Program, g gate) await.Wait {
	return await.Wait{State: g.state, For: g.wait, Log: p.Hints(), Describe: p.Describe}
}

func (g gate) describeState(commit *ledger.Commit) string {
	return g.presentState(commit.AnsweredState(), commit.Standing)
}

// answeredState is like describeState, for the answer of the gate. It may be nil.
func (g gate) answeredState(answer *ledger.Gate) string {
	if answer == nil || answer.State == nil || answer.Standing == nil {
		return "unknown"
	}
	return g.presentState(*answer.State, *answer.Standing)
}

func (g gate) presentState(state, standing ledger.State) string {
	return terminal.State(state, standing) + strings.TrimSuffix(" for "+g.target, " for ")
}

// lookUp returns the commit, or nil if it is not in the ledger. If the ledger does not know all that a deployment would
// ship, it first gets what the work tree has, if the API token may write.
func lookUp(ctx context.Context, c *cli.Connection, g gate, sha string) (*ledger.Commit, error) {
	if err := c.Settle(ctx); err != nil {
		return nil, err
	}
	commit, err := c.CommitFor(ctx, g.repo.Org, g.repo.Repo, sha, g.target, g.shutBy())
	if err == nil {
		if sent, err := registration.SendShipped(ctx, c.Client, commit); err == nil && sent {
			commit, err = c.CommitFor(ctx, g.repo.Org, g.repo.Repo, sha, g.target, g.shutBy())
			return &commit, err
		}
		return &commit, nil
	}
	return nil, g.unlessUnknown(ctx, c, err)
}

// unlessUnknown returns an error of a request for a commit, or nil if the commit is not in the ledger.
func (g gate) unlessUnknown(ctx context.Context, c *cli.Connection, err error) error {
	if client.CodeOf(err) != ledger.CodeNotFound {
		return err
	}
	return g.repo.MustExist(ctx, c) // a missing repo is an error
}

// gateArtifact is like gate, for the commits that an artifact was built from.
func gateArtifact(p *cli.Program, command *cobra.Command, args []string, g gate) error {
	return p.WithOrgOrRepo(command, args, func(ctx context.Context, c *cli.Connection, org, repo string) error {
		g.repo = cli.RepoName{Org: org, Repo: repo}
		ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		defer stop()
		query := ledger.ArtifactQuery{Digests: []string{g.artifact}, Repo: g.repo.Repo, Environment: g.environment}
		a, err := await.UntilArtifact(ctx, c, waitFor(p, g), g.repo.Org, query)
		if err != nil {
			return err
		}
		err = p.Print(a, func() { display.Artifact(p.Stdout, g.repo.Org, a, g.state) })
		g.job.report(p, g.summary, report.Artifact(display.ArtifactTitle(a, g.state), a, g.state))
		if err == nil && !a.Reached(g.state) {
			return &cli.ExitError{Status: g.missed()}
		}
		return err
	})
}

// requireState returns an error with an exit status, before a command is run, if the commit has
// not reached the state, was rolled back from the environment of the request, or ships there what
// is not covered. It prints what is missing. The signer may be nil.
func requireState(p *cli.Program, command *cobra.Command, a *attestRequest, s *signing.Signer) error {
	l, err := p.Locate(command)
	if err != nil {
		return err
	}
	g := gate{repo: a.repo, rev: a.commit, state: a.required, environment: a.environment}
	return l.Use(command.Context(), func(ctx context.Context, c *cli.Connection) error {
		if a.again == "" {
			answer, err := g.ask(ctx, c, g.rev)
			if err != nil || answer != nil && answer.Reached {
				return err
			}
		}
		commit, err := lookUp(ctx, c, g, g.rev)
		if err != nil {
			return err
		}
		if commit == nil {
			return cli.Exitf(cli.ExitNotReached,
				"commit %s not found, so it has not reached %s: nothing was run or signed", g.repo.At(g.rev), g.state)
		}
		if a.again != "" {
			if err := a.checkAgain(ctx, c, s, commit); err != nil {
				return err
			}
			commit.RolledBack = slices.DeleteFunc(commit.RolledBack, g.isFrom)
		}

		if commit.Gate(g.state, g.environment).Reached {
			return nil
		}
		g.explain(p.Stderr, g.title(commit, false), commit)
		return cli.Exitf(cli.ExitNotReached, "%s", g.refusal(commit))
	})
}

// refusal says why nothing is run or signed for a commit for which the gate is shut.
func (g gate) refusal(commit *ledger.Commit) string {
	switch {
	case !commit.Reached(g.state):
		return fmt.Sprintf("the commit has not reached %s: nothing was run or signed", g.state)
	case slices.ContainsFunc(commit.RolledBack, g.isFrom):
		return fmt.Sprintf("the commit was rolled back from %s: nothing was run or signed (to deploy it although it was, "+
			"somebody else uses ledgerd deploy %[1]s --again)", g.environment)
	}
	return commit.Delivery.Summary() + ": nothing was run or signed"
}

// isFrom reports whether a rollback is from the environment of the gate.
func (g gate) isFrom(r ledger.CommitRollback) bool { return r.Environment == g.environment }

// checkAgain refuses to deploy a commit again by the one who has rolled it back, if the signer is
// known before the command is run.
func (a *attestRequest) checkAgain(
	ctx context.Context, c *cli.Connection, s *signing.Signer, commit *ledger.Commit,
) error {
	for _, r := range commit.RolledBack {
		if r.Environment != a.environment || s == nil {
			continue
		}
		identities, err := client.Collect(c.Identities(ctx, a.repo.Org), 0)
		if err != nil {
			return err
		}
		name, err := s.Name(identities, a.commit, a.predicate)
		if err != nil {
			return err
		}
		if name.String() == r.Identity {
			return cli.Exitf(cli.ExitNotReached, "%s has rolled the commit back from %s: somebody else must deploy it again, "+
				"so nothing was run or signed", r.Identity, r.Environment)
		}
	}
	return nil
}

// running returns the commit that runs in an environment.
func running(ctx context.Context, c *cli.Connection, name cli.RepoName, environment string) (sha string, err error) {
	for e, err := range c.Environments(ctx, name.Org, client.EnvironmentFilter{Repo: name.Repo, Name: environment}) {
		if err != nil {
			return "", err
		}
		if e.Deployment != nil {
			return e.Deployment.Commit, nil
		}
	}
	return "", cli.Exitf(cli.ExitNotReached, "it is not known which commit of %s runs in %s (see 'ledgerd environment "+
		"list')", name, environment)
}
