package record

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/ci/checkout"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/mergeclaim"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// An attestRequest holds the arguments of attest.
type attestRequest struct {
	names     []string // the arguments before the command: ORG/REPO or none
	repo      cli.RepoName
	commit    string // a git revision, replaced by the sha that it resolves to
	predicate string
	// environment is that of the predicate; empty if it is about none. again is why a commit is deployed
	// to it that was rolled back.
	environment, again string
	status             ledger.Status
	// target is the branch that a commit to review is meant for, and base the commit since which it is reviewed: a
	// revision of the target, replaced by the sha that is signed.
	// from is the commit since which it is reviewed, an ancestor of it; empty for the merge base.
	target, base, from string
	statement          string // file name
	envelope           string // file name
	index              string // file name
	artifacts          []attestation.Artifact
	signerFiles
	ci      bool   // sign as the CI job, with a key of its own
	out     string // file name
	claim   mergeclaim.Request
	claimed []byte // the statement of the claim
	// required is the state that the commit must have reached, if needsState is set.
	required    ledger.State
	needsState  bool
	annotations []string
	command     []string
}

// takeArgs splits the arguments into the repo and the command to run.
func (a *attestRequest) takeArgs(command *cobra.Command, args []string) error {
	names := args
	if dash := command.ArgsLenAtDash(); dash >= 0 {
		names, a.command = args[:dash], args[dash:]
	}
	if len(names) > 1 {
		return fmt.Errorf("unexpected argument %q: put the command to run after --", names[1])
	}
	if a.names = names; len(names) == 0 {
		return nil
	}
	_, err := cli.ParseRepoName(names[0])
	return err
}

// complete takes the commit and the page of the run from a CI job, for a statement of
// attest's own. A command must have been run on the commit.
func (a *attestRequest) complete(ctx context.Context, p *cli.Program, job *job) error {
	if !job.isCI || a.statement != "" || a.envelope != "" {
		return nil
	}
	if a.commit == "" {
		if err := a.takeCommit(ctx, p, job); err != nil {
			return err
		}
	}
	if !a.claim.IsSet() {
		a.annotations = job.annotations(a.annotations)
	}
	return nil
}

// takeCommit takes the commit from a CI job, and fetches it for its object.
func (a *attestRequest) takeCommit(ctx context.Context, p *cli.Program, job *job) (err error) {
	if a.commit, err = job.commit(ctx); err != nil {
		return err
	}
	if len(a.command) > 0 && ledger.IsCommit(a.commit) {
		if err := checkout.CheckTested(ctx, job.Job, a.commit); err != nil {
			return err
		}
	}
	if err := checkout.Fetch(ctx, a.commit); err != nil {
		terminal.Printf(p.Stderr, "Commit not fetched: the ledger does not get its author from this job. Cause: %s\n",
			p.Describe(err))
	}
	return nil
}

// check reports flags that are missing or mutually exclusive, and completes --commit.
func (a *attestRequest) check() error {
	fromFile := a.statement != "" || a.envelope != ""
	if a.commit == "" && !fromFile {
		a.commit = "HEAD"
	}
	if a.ci {
		if err := a.checkCI(); err != nil {
			return err
		}
	}
	if a.claim.IsSet() {
		if a.index != "" {
			return cli.Usagef("--artifact-index cannot be used with a claim of a merge")
		}
		if err := a.claim.Check(a.key != "" || a.ci, a.command); err != nil {
			return cli.Usagef("%v", err)
		}
		return nil
	}
	switch {
	case fromFile && a.index != "":
		return cli.Usagef("--artifact-index cannot be used with --statement or --envelope: the statement names its artifacts")
	case len(a.command) > 0 && (fromFile || a.status != ""):
		return cli.Usagef("a command and --status, --statement or --envelope are mutually exclusive")
	case len(a.command) == 0 && !fromFile && a.status == "":
		return cli.Usagef("nothing to attest: put a command after --, or use --status, --statement, --envelope, " +
			"--merge-of or --squash-of")
	case fromFile && (a.predicate != "" || len(a.annotations) > 0):
		return cli.Usagef("--predicate and --annotation cannot be used with --statement or --envelope: " +
			"the statement has its own")
	case !fromFile && a.predicate == "":
		return cli.Usagef("--predicate is required")
	case !fromFile && !ledger.IsPredicateName(a.predicate):
		return cli.Usagef("invalid --predicate %q: use e.g. test:go", a.predicate)
	case a.needsState && a.commit == "":
		return cli.Usagef("--require-state needs --commit")
	case a.envelope != "" && (a.key != "" || a.cert != ""):
		return cli.Usagef("--key and --cert cannot be used with --envelope: it is already signed")
	case a.envelope == "" && a.key == "" && !a.ci:
		return cli.Usagef("--key or --ci is required")
	}

	for _, annotation := range a.annotations {
		if name, _, ok := strings.Cut(annotation, "="); !ok || name == "" {
			return cli.Usagef("invalid --annotation %q: use key=value", annotation)
		}
	}
	return nil
}

// checkCI reports flags that --ci excludes.
func (a *attestRequest) checkCI() error {
	switch {
	case a.key != "" || a.cert != "":
		return cli.Usagef("--ci and --key or --cert are mutually exclusive")
	case a.envelope != "":
		return cli.Usagef("--ci cannot be used with --envelope: it is already signed")
	case a.out != "":
		return cli.Usagef("--ci cannot be used with --out: the certificate is valid for ten minutes only")
	}
	return nil
}
