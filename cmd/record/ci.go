package record

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/ci"
	"github.com/ledgerd/ledgerd/cmd/internal/ci/checkout"
	"github.com/ledgerd/ledgerd/cmd/internal/ci/idtoken"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/terminal"
)

func newCI(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "ci",
		Short: "Show what ledgerd knows about this CI job",
		Long: `Shows what ledgerd has detected of the CI job that it runs in, what is missing,
and how to fix that. It needs no server. Detected are GitHub, GitLab, Gitea,
Forgejo, Jenkins, Buildkite, CircleCI, Azure and Bitbucket.

Other commands take from the job what no flag or argument sets:
  attest           the commit, and the page of the run as annotation run_url
  commit register  the commit, its branch and target, and the base
  gate             the commit
  radar            the commit, and with --dry-run its branch and base
The commit of a pull request is the head of its branch, never the merge commit
that the CI system tests. The branch of a fork is fork/OWNER/BRANCH. If the event
is about something else than the commit that the CI system checks out, such as a
comment, and names no commit, commands need --commit.

LEDGERD_CI=off turns this off, for jobs about commits of another repository. With
-o json, the output is null outside a CI job.`,
		Example: "  ledgerd ci\n  ledgerd ci -o json",
		RunE: func(command *cobra.Command, _ []string) error {
			job, ok := ci.Detect(os.Getenv)
			if !ok {
				return p.Print((*ci.Job)(nil), func() { fmt.Fprintln(p.Stdout, "Not in a CI job that ledgerd knows") })
			}
			checkout.Inspect(command.Context(), &job)
			if os.Getenv("LEDGERD_DATABASE") == "" {
				job.Problems = append(job.Problems, missingSettings(os.Getenv)...)
			}
			return p.Print(job, func() { showJob(p, job) })
		},
	}
}

// missingSettings returns what a job needs to use a server, and does not have.
func missingSettings(getenv func(string) string) (problems []ci.Problem) {
	if getenv("LEDGERD_URL") == "" {
		problems = append(problems, ci.Problem{Problem: "no server is set", Fix: "set LEDGERD_URL"})
	}
	_, err := idtoken.Find(getenv, "") // with which attest --ci gets an API token
	if err != nil && getenv("LEDGERD_TOKEN") == "" && getenv("LEDGERD_TOKEN_FILE") == "" {
		problems = append(problems, ci.Problem{Problem: "no API token is set",
			Fix: "set LEDGERD_TOKEN from a secret of the CI system"})
	}
	return problems
}

func showJob(p *cli.Program, job ci.Job) {
	fork := "no"
	if job.Fork {
		fork = "yes"
	}
	t := terminal.NewTable(p.Stdout)
	t.Row("provider", job.Provider.Name())
	t.Row("event", strings.ReplaceAll(string(job.Event), "_", " "))
	t.Row("commit", terminal.OrDash(job.Commit))
	t.Row("branch", terminal.OrDash(job.Branch))
	t.Row("target", terminal.OrDash(job.Target))
	t.Row("base", terminal.OrDash(job.Base))
	t.Row("before", terminal.OrDash(job.Before))
	t.Row("tag", terminal.OrDash(job.Tag))
	t.Row("pull request", terminal.OrDash(job.PullRequest))
	t.Row("fork", fork)
	t.Row("run", terminal.OrDash(job.RunURL))
	t.Row("repository", terminal.OrDash(job.RepoURL))
	t.Flush()

	if len(job.Problems) == 0 {
		return
	}
	fmt.Fprintln(p.Stdout)
	t = terminal.NewTable(p.Stdout, "PROBLEM", "FIX")
	for _, problem := range job.Problems {
		t.Row(problem.Problem, problem.Fix)
	}
	t.Flush()
}
