package record

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/ci"
	"github.com/ledgerd/ledgerd/cmd/internal/ci/checkout"
	"github.com/ledgerd/ledgerd/cmd/internal/ci/report"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

// A job is the CI job that a command runs in, if any. It completes what the user has not
// set with flags.
type job struct {
	ci.Job
	isCI  bool
	taken []string // what the command has taken from it, for people
}

func detectJob() *job {
	detected, isCI := ci.Detect(os.Getenv)
	return &job{Job: detected, isCI: isCI}
}

// commit returns the commit of the job, or HEAD outside a job. It is a sha or a revision.
func (j *job) commit(ctx context.Context) (string, error) {
	if !j.isCI {
		return "HEAD", nil
	}
	rev, err := checkout.Commit(ctx, j.Job)
	if err == nil && rev != "HEAD" {
		j.taken = append(j.taken, "commit "+ledger.Short(rev))
	}
	return rev, err
}

// log prints in one line what was taken from the job.
func (j *job) log(p *cli.Program) {
	if len(j.taken) > 0 {
		terminal.Printf(p.Hints(), "From %s: %s\n", terminal.Printable(j.Describe()),
			terminal.Printable(strings.Join(j.taken, ", ")))
	}
}

// complete completes a query about a commit. If the user has named its revision, branch and
// target are taken only if that is the commit of the job.
func (j *job) complete(ctx context.Context, command *cobra.Command, named bool, q *gitrepo.Query) error {
	if !j.isCI {
		return nil
	}
	flags := command.Flags()
	if !flags.Changed("fetch") {
		q.Fetch = true
	}
	if !named {
		var err error
		if q.Rev, err = j.commit(ctx); err != nil {
			return err
		}
	} else if !j.isAbout(ctx, q.Rev) {
		return nil
	}

	take := func(flag, value string, into *string) {
		if flags.Lookup(flag) != nil && !flags.Changed(flag) && value != "" {
			*into = value
			j.taken = append(j.taken, flag+" "+value)
		}
	}
	take("branch", j.Branch, &q.Branch)
	take("target", j.Target, &q.Target)
	if !flags.Changed("base") {
		q.BaseBranch = j.Target
	}
	return nil
}

// isAbout reports whether a revision is the commit of the job.
func (j *job) isAbout(ctx context.Context, rev string) bool {
	own, err := checkout.Commit(ctx, j.Job)
	if err != nil {
		return false
	}
	a, errA := gitrepo.Resolve(ctx, own)
	b, errB := gitrepo.Resolve(ctx, rev)
	return errA == nil && errB == nil && a == b
}

// hasNoBranch reports whether the commit of the job is on no branch of its own, although
// the clone may be on one: a merge queue's branches are not in flight.
func (j *job) hasNoBranch() bool {
	return j.isCI && j.Branch == "" && (j.Event == ci.Tag || j.Event == ci.MergeQueue)
}

// explain adds to an error about an incomplete clone how to get a complete one.
func (j *job) explain(err error) error {
	if !j.isCI || !gitrepo.IsIncomplete(err) {
		return err
	}
	return fmt.Errorf("%w (%s)", err, j.Provider.WholeHistory())
}

// checkComplete returns an error if a job would register a commit without its changes, so
// that Conflict Radar would skip it for good.
func (j *job) checkComplete(c gitrepo.Commit, allowIncomplete bool) error {
	if !j.isCI || allowIncomplete || c.ChangesErr == nil {
		return nil
	}
	if gitrepo.IsIncomplete(c.ChangesErr) {
		return fmt.Errorf("it has no change record: %w (%s, or pass --allow-incomplete)", c.ChangesErr,
			j.Provider.WholeHistory())
	}
	return fmt.Errorf("it has no change record: %w (pass --allow-incomplete)", c.ChangesErr)
}

// annotations adds the page of the run to annotations of the form key=value, unless they
// have one.
func (j *job) annotations(list []string) []string {
	isRun := func(a string) bool { return strings.HasPrefix(a, "run_url=") }
	if !j.isCI || j.RunURL == "" || slices.ContainsFunc(list, isRun) {
		return list
	}
	j.taken = append(j.taken, "run_url")
	return append(list, "run_url="+j.RunURL)
}

// report writes a summary and annotations. The command succeeds without them.
func (j *job) report(p *cli.Program, summary string, r report.Report) {
	o := report.Output{Provider: j.Provider, Summary: summary, Log: p.RawStderr, Getenv: os.Getenv}
	if err := o.Write(r); err != nil {
		fmt.Fprintf(p.Stderr, "ledgerd: %s\n", p.Describe(err))
	}
}

// summaryFlag defines --summary.
func summaryFlag(command *cobra.Command, file *string) {
	command.Flags().StringVar(file, "summary", "", "append a summary in Markdown to this `file` (default the summary of "+
		"the CI step, if it has one)")
}

// fetchFlag defines --fetch.
func fetchFlag(command *cobra.Command, fetch *bool) {
	command.Flags().BoolVar(fetch, "fetch", false, "fetch history that the clone lacks from origin (default in CI jobs)")
}
