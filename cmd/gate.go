package cmd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/ledger"
)

// A gate is a question about a commit, asked once or until it is answered yes.
type gate struct {
	repo  repoName
	rev   string
	state ledger.State
	wait  time.Duration
}

func newGate(p *program) *cobra.Command {
	var g gate
	command := &cobra.Command{
		Use:   "gate ORG/REPO",
		Short: "Tell by the exit status whether a commit has reached a state",
		Long: `Prints what the policy asks of a commit and what of it is met, and tells by its
exit status whether the commit has reached the state: what a deployment asks
before it begins. With --wait it asks again until the commit has.

A state counts as reached when the commit is in it or in one above it. A commit
that the ledger does not know has reached none: with -o json its state is null.

EXIT STATUS
  0  reached
  1  could not tell: no answer, or a refusal
  2  wrong usage
  4  not reached
  5  not reached when the --wait was over`,
		Example: `  ledgerd gate acme/api --commit HEAD --state PROMOTABLE
  ledgerd gate acme/api --commit HEAD --state PROMOTABLE --wait 10m`,
		Args: takes("ORG/REPO"),
		RunE: func(command *cobra.Command, args []string) (err error) {
			if g.repo, err = parseRepoName(args[0]); err != nil {
				return err
			}
			if g.wait < 0 {
				return usagef("--wait %v is no time", g.wait)
			}
			return p.gate(command, g)
		},
	}
	flags := command.Flags()
	flags.StringVar(&g.rev, "commit", "HEAD", "commit to ask about, a sha or a git `rev`")
	stateFlag(command, &g.state, "state to have reached")
	flags.DurationVar(&g.wait, "wait", 0, "how long to wait for it")
	require(command, "state")
	return command
}

func (p *program) gate(command *cobra.Command, g gate) error {
	ctx, stop := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	t, err := p.target(command)
	if err != nil {
		return err
	}
	sha, err := gitrepo.Find(ctx, g.rev)
	if err != nil {
		return err
	}
	return t.use(ctx, func(ctx context.Context, c *connection) error {
		commit, err := p.await(ctx, c, g, sha)
		if err != nil {
			return err
		}
		return p.gateAnswer(g, sha, commit)
	})
}

// gateAnswer prints what was found, nil for a commit that is not known, and
// returns the exit status that says it again.
func (p *program) gateAnswer(g gate, sha string, commit *ledger.Commit) error {
	status := exitNotReached
	if g.wait > 0 {
		status = exitGaveUp
	}
	if commit == nil {
		unknown := struct {
			Org   string        `json:"org"`
			Repo  string        `json:"repo"`
			SHA   string        `json:"sha"`
			State *ledger.State `json:"state"`
		}{g.repo.org, g.repo.repo, sha, nil}
		if err := p.print(unknown, func() {}); err != nil {
			return err
		}
		return &exitError{status, fmt.Errorf("the ledger does not know commit %s, so it has not reached %s", g.repo.at(sha),
			g.state)}
	}
	err := p.print(commit, func() {
		verb := "has not reached"
		if commit.State >= g.state {
			verb = "has reached"
		}
		fmt.Fprintf(p.stdout, "%s is %s: it %s %s\n", g.repo.at(commit.SHA), commit.State, verb, g.state)
		p.showRequirements(commit.Requirements)
	})
	if err == nil && commit.State < g.state {
		return &exitError{status: status}
	}
	return err
}

// The time between two questions grows from the first to the last of these.
const (
	firstPause = time.Second
	lastPause  = 5 * time.Second
)

// await asks for the commit until it has reached the state or the wait is over,
// and returns the last answer. Trouble on the way to the server is waited out.
func (p *program) await(ctx context.Context, c *connection, g gate, sha string) (*ledger.Commit, error) {
	deadline := time.Now().Add(g.wait)
	told := ""
	for pause := firstPause; ; pause = min(pause*3/2, lastPause) {
		commit, err := ask(ctx, c, g.repo, sha)
		reached := commit != nil && commit.State >= g.state
		left := time.Until(deadline)
		if reached || left <= 0 || (err != nil && !passing(err)) {
			return commit, err
		}
		switch {
		case err != nil:
			fmt.Fprintf(p.stderr, "asking again: %s\n", describe(err))
		case describeState(commit) != told:
			told = describeState(commit)
			fmt.Fprintf(p.stderr, "%s is %s, waiting for %s\n", g.repo.at(sha), told, g.state)
		}
		select {
		case <-time.After(min(pause, left)):
		case <-ctx.Done():
			return nil, errors.New("interrupted while waiting")
		}
	}
}

func describeState(commit *ledger.Commit) string {
	if commit == nil {
		return "not known"
	}
	return commit.State.String()
}

// ask returns the commit, nil where the ledger does not know it.
func ask(ctx context.Context, c *connection, name repoName, sha string) (*ledger.Commit, error) {
	if err := c.settle(ctx); err != nil {
		return nil, err
	}
	commit, err := c.Commit(ctx, name.org, name.repo, sha)
	if err == nil {
		return &commit, nil
	}
	if client.CodeOf(err) != ledger.CodeNotFound {
		return nil, err
	}
	// Is it the commit that is not there, or the repo?
	return nil, name.mustExist(ctx, c)
}

// passing tells whether an error may be over by the next time: the server
// cannot be reached, or cannot answer now.
func passing(err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	return !ok || e.Status >= 500 || e.Status == http.StatusTooManyRequests
}
