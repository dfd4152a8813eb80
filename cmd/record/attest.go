package record

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/atomicfile"
	"github.com/ledgerd/ledgerd/internal/ci/checkout"
	"github.com/ledgerd/ledgerd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/display"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/internal/mergeclaim"
	"github.com/ledgerd/ledgerd/internal/registration"
	"github.com/ledgerd/ledgerd/internal/signing"
	"github.com/ledgerd/ledgerd/internal/subprocess"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

// An attestRequest holds the arguments of attest.
type attestRequest struct {
	names     []string // the arguments before the command: ORG/REPO or none
	repo      cli.RepoName
	commit    string // a git revision, replaced by the sha that it resolves to
	predicate string
	status    ledger.Status
	statement string // file name
	envelope  string // file name
	key, cert string // file names
	out       string // file name
	claim     mergeclaim.Request
	claimed   []byte // the statement of the claim
	// required is the state that the commit must have reached, if needsState is set.
	required    ledger.State
	needsState  bool
	annotations []string
	command     []string
}

func newAttest(p *cli.Program) *cobra.Command {
	var a attestRequest
	command := &cobra.Command{
		Use:   "attest [ORG/REPO] [flags] -- COMMAND [ARG]...",
		Short: "Run a command and record a signed result",
		Long: `Runs a command and records a signed attestation about a commit: whether the
command passed, and how long it took. Input, output, signals and the exit status
of the command are passed through.

The command cannot read the API token or the key from ledgerd: LEDGERD_TOKEN and
LEDGERD_TOKEN_FILE are removed from its environment, and on Linux the memory of
ledgerd is closed to it. But it can read --token, and every file that you can. If
you do not trust it, run it in a step without secrets and sign in another one,
with --status. See SECURITY.md.

If a signal stops ledgerd, or SIGINT, SIGTERM or SIGHUP ends the command, or if
it cannot be started, nothing is recorded: it has neither passed nor failed.

Without a command, attest records --status, or the --statement in a file, or an
--envelope that is already signed.

In a git work tree that has the commit, attest first registers it with the commit
object, which proves its author, committer and co-authors, for requirements that
exclude them. Unlike 'ledgerd commit
register', it reports no branch and no changes.
If that is refused, it prints a warning and goes on.

In a CI job, the commit is by default the head of the pull request or the commit
of the job, and the page of the run is added as --annotation run_url; see
'ledgerd ci'. A command must run on this commit or on a merge of it.

With --squash-of or --merge-of, attest claims that the commit is a clean merge:
that its tree is exactly what git (2.38 or later) makes of its first parent and
the given commit, without conflicts. If it is not, the paths that differ are
named and nothing is signed. Configuration, attributes and merge drivers are
ignored. Evidence about the given commit then carries to requirements with
carry: ["merge"], if the first parent had reached their state; see
docs/policy.md. All three commits must be in the work tree, which registers them.

With --cert the statement is sent as a Sigstore bundle with the certificate,
otherwise as a DSSE envelope. The private key must not be encrypted.

A deployment that does not count is recorded as a violation, with the reasons.
With --require-state PROMOTABLE, such a deployment is not even run: if the commit
has not reached the state, no command is run and nothing is signed.

EXIT STATUS
  The exit status of the command if it failed; 127 if it could not be started;
  128 plus the signal number if a signal stopped it. Otherwise:
  0  recorded (with --out: written)
  1  not recorded; the command, if any, passed
  2  usage error; no command was run
  4  the commit has not reached --require-state; no command was run`,
		Example: `  ledgerd attest acme/api --commit HEAD --predicate test:go --key ci.key -- go test ./...
  ledgerd attest acme/api --commit HEAD --predicate deploy:prod --require-state PROMOTABLE --key cd.key -- ./deploy.sh
  ledgerd attest acme/api --commit HEAD --predicate review:code --status pass --key alice.key --cert alice.crt
  ledgerd attest acme/api --commit HEAD --squash-of feature/login --key queue.key
  ledgerd attest acme/api --statement provenance.json --key ci.key
  ledgerd attest acme/api --envelope bundle.json
  ledgerd attest acme/api --commit HEAD --predicate test:go --key ci.key --out envelope.json -- go test ./...`,
		Args: a.takeArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			a.needsState = command.Flags().Changed("require-state")
			job := detectJob()
			err := a.complete(command.Context(), p, job)
			if err == nil {
				err = a.check()
			}
			if err == nil {
				a.repo, _, err = p.Repo(command, a.names)
			}
			if err != nil {
				return err
			}
			job.log(p)
			return attest(p, command, &a)
		},
	}

	flags := command.Flags()
	flags.StringVar(&a.commit, "commit", "", "commit to attest, a sha or a git `rev` (default HEAD); with --statement or "+
		"--envelope, the commit it must be about")
	flags.StringVar(&a.predicate, "predicate", "", "`name` of the predicate, such as test:go")
	flagvalue.ResultVar(command, &a.status, "record this status instead of running a command")
	flags.StringVar(&a.statement, "statement", "", "sign and record the in-toto statement in this `file`")
	flags.StringVar(&a.envelope, "envelope", "", "record the signed envelope in this `file`")
	flags.StringVar(&a.key, "key", "", "private key to sign with, a PEM `file`")
	flags.StringVar(&a.cert, "cert", "", "certificate of the key, with its chain, a PEM `file`")
	flags.StringVar(&a.out, "out", "", "write the envelope to this `file` (- for standard output) instead of "+
		"recording it")
	flags.StringArrayVar(&a.annotations, "annotation", nil, "`key=value` to add to the statement; repeatable")
	flagvalue.StateVar(command, &a.required, "require-state", "run and sign nothing unless the commit has reached this "+
		"state")
	flagvalue.Exclude(command, "out", "envelope")
	a.claim.Flags(command)
	flagvalue.RequireRev(command, "commit", "merge-of", "squash-of")

	return command
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
		fmt.Fprintf(p.Stderr, "Commit not fetched: the ledger does not get its author from this job. Cause: %s\n",
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
	if a.claim.IsSet() {
		if err := a.claim.Check(a.key, a.command); err != nil {
			return cli.Usagef("%v", err)
		}
		return nil
	}
	switch {
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
	case a.envelope == "" && a.key == "":
		return cli.Usagef("--key is required")
	}

	for _, annotation := range a.annotations {
		if name, _, ok := strings.Cut(annotation, "="); !ok || name == "" {
			return cli.Usagef("invalid --annotation %q: use key=value", annotation)
		}
	}
	return nil
}

// attest creates the attestation and records it, or writes it to --out. It checks
// as much as it can before it runs the command, which may take long.
func attest(p *cli.Program, command *cobra.Command, a *attestRequest) (err error) {
	ctx := command.Context()

	var s *signing.Signer
	if a.envelope == "" {
		if s, err = signing.Load(a.key, a.cert); err != nil {
			return err
		}
	}
	if len(a.command) > 0 && p.Global.Token != "" {
		fmt.Fprintln(p.Stderr, "ledgerd: the command can read --token: use LEDGERD_TOKEN or LEDGERD_TOKEN_FILE instead")
	}
	if a.commit != "" {
		if a.commit, err = gitrepo.Resolve(ctx, a.commit); err != nil {
			return err
		}
	}
	if a.needsState {
		if err := requireState(p, command, gate{repo: a.repo, rev: a.commit, state: a.required}); err != nil {
			return err
		}
	}
	if a.claim.IsSet() {
		a.status = ledger.Pass // or else nothing is signed
		if a.claimed, a.predicate, err = a.claim.Statement(ctx, a.repo.String(), a.commit); err != nil {
			return err
		}
	}
	save, discard, err := newSaver(p, command, a, s)
	if err != nil {
		return err
	}
	defer discard()

	o := runCommand(p, a)
	switch {
	case o.NotStarted:
		return cli.Exitf(o.Code, "cannot start the command: %w: nothing was recorded", o.Err)
	case o.Stopped != 0:
		return cli.Exitf(128+int(o.Stopped), "stopped by a signal (%v): nothing was recorded", o.Stopped)
	}
	envelope, err := newEnvelope(p, a, s, o)
	if err == nil {
		err = save(ctx, o, envelope)
	}
	return a.exit(o, err)
}

// runCommand runs the command, if there is one. Otherwise it returns an outcome with
// --status.
func runCommand(p *cli.Program, a *attestRequest) subprocess.Outcome {
	if len(a.command) == 0 {
		now := time.Now()
		return subprocess.Outcome{Status: a.status, Started: now, Finished: now}
	}
	return subprocess.Run(a.command, p.Stdin, p.RawStdout, p.RawStderr)
}

// exit returns the error, with its exit status, that attest ends with after a command that
// has passed or failed. err is the error of signing or recording the outcome.
func (a *attestRequest) exit(o subprocess.Outcome, err error) error {
	if o.Err != nil {
		err = errors.Join(o.Err, err)
	}
	switch {
	case o.Code != 0:
		return &cli.ExitError{Status: o.Code, Err: err}
	case err != nil && len(a.command) > 0:
		return fmt.Errorf("the command passed, but the result was not recorded: %w", err)
	}
	return err
}

// A saveFunc records an envelope or writes it to a file.
type saveFunc func(ctx context.Context, o subprocess.Outcome, envelope []byte) error

// newSaver returns a function that writes the envelope to --out or records it. It first
// checks, as far as possible, that this will succeed. The caller must always call the
// second function: it removes temporary files.
func newSaver(p *cli.Program, command *cobra.Command, a *attestRequest, s *signing.Signer) (saveFunc, func(), error) {
	if a.out == "-" {
		return func(_ context.Context, _ subprocess.Outcome, envelope []byte) error {
			_, err := p.Stdout.Write(append(envelope, '\n'))
			return err
		}, func() {}, nil
	}

	if a.out != "" {
		file, err := atomicfile.Create(a.out, 0o644)
		if err != nil {
			return nil, nil, err
		}
		return func(_ context.Context, o subprocess.Outcome, envelope []byte) error {
			return writeEnvelope(p, file, a, o, envelope)
		}, file.Discard, nil
	}

	l, err := p.Locate(command)
	if err != nil {
		return nil, nil, err
	}
	err = l.Use(command.Context(), func(ctx context.Context, c *cli.Connection) error {
		return a.checkMayRecord(ctx, c, s)
	})
	return func(ctx context.Context, _ subprocess.Outcome, envelope []byte) error {
		return recordEnvelope(ctx, p, l, a, envelope)
	}, func() {}, err
}

// checkMayRecord reports why the ledger would refuse the attestation: no such repo,
// a token without the scope write, or an untrusted signer. If there is no command
// to run, it only checks the repo, since the ledger reports the rest at once.
func (a *attestRequest) checkMayRecord(ctx context.Context, c *cli.Connection, s *signing.Signer) error {
	if err := a.repo.MustExist(ctx, c); err != nil || len(a.command) == 0 {
		return err
	}
	if c.Local == nil {
		own, err := c.OwnToken(ctx)
		if err != nil {
			return err
		}
		if own.Scope < ledger.Write {
			return fmt.Errorf("token %q has the scope %s: recording requires write", own.Name, own.Scope)
		}
	}
	identities, err := client.Collect(c.Identities(ctx, a.repo.Org), 0)
	if err != nil {
		return err
	}
	return s.CheckTrusted(identities, a.commit)
}

// newEnvelope returns the signed envelope to record.
func newEnvelope(p *cli.Program, a *attestRequest, s *signing.Signer, o subprocess.Outcome) ([]byte, error) {
	if a.envelope != "" {
		return p.ReadFile(a.envelope)
	}

	if a.claimed != nil {
		return s.Sign(a.claimed)
	}
	if a.statement != "" {
		statement, err := p.ReadFile(a.statement)
		if err != nil {
			return nil, err
		}
		if err := s.CheckStatement(statement); err != nil {
			return nil, fmt.Errorf("%s: %w", a.statement, err)
		}
		return s.Sign(statement)
	}

	statement, err := signing.NewStatement(a.repo.String(), a.commit, a.predicate, a.annotations, o.Status, o.Started,
		o.Finished)
	if err != nil {
		return nil, err
	}
	return s.Sign(statement)
}

func writeEnvelope(
	p *cli.Program, file *atomicfile.File, a *attestRequest, o subprocess.Outcome, envelope []byte,
) error {
	if err := file.Write(envelope); err != nil {
		return err
	}
	subject := a.statement
	if subject == "" {
		subject = fmt.Sprintf("%s %s", a.predicate, o.Status)
	}
	fmt.Fprintf(p.Hints(), "Signed %s and wrote it to %s. To record it, run 'ledgerd attest %s --envelope %s'.\n", subject,
		a.out, a.repo, a.out)
	return nil
}

// recordEnvelope records the envelope and prints the commit's state.
func recordEnvelope(ctx context.Context, p *cli.Program, l cli.Location, a *attestRequest, envelope []byte) error {
	return l.Use(ctx, func(ctx context.Context, c *cli.Connection) error {
		for _, sha := range mergeclaim.Commits(envelope, a.commit) {
			describeCommit(ctx, p, c, a.repo, sha)
		}
		record, created, err := c.Record(ctx, a.repo.Org, a.repo.Repo, envelope)
		if a.envelope != "" && client.CodeOf(err) == ledger.CodeInvalidJSON {
			return fmt.Errorf("%s: %w", a.envelope, err)
		}
		if err != nil {
			return err
		}
		if a.commit == "" { // only the statement names it
			describeCommit(ctx, p, c, a.repo, record.Commit)
		}
		verb := "Recorded"
		if !created {
			verb = "Already recorded:"
		}
		state := "unknown"
		if commit, err := c.Commit(ctx, record.Org, record.Repo, record.Commit); err == nil {
			state = commit.State.String()
			defer display.UselessClaim(p.Stderr, commit, record.ID, time.Now())
		}
		fmt.Fprintf(p.Hints(), "%s %s %s (%v) on %s. State: %s\n", verb, terminal.Printable(record.Predicate),
			record.Result.Status, display.Milliseconds(record.Result.DurationMS), a.repo.At(record.Commit), state)
		display.Violation(p.Stderr, a.repo.At(record.Commit), record)

		if a.commit != "" && a.commit != record.Commit {
			return fmt.Errorf("the attestation is about commit %s, not about --commit %s", terminal.Short(record.Commit),
				terminal.Short(a.commit))
		}
		return p.Print(record, func() {})
	})
}

// describeCommit registers a commit with its author, if the work tree has it. The
// attestation is recorded in any case.
func describeCommit(ctx context.Context, p *cli.Program, c *cli.Connection, name cli.RepoName, sha string) {
	if err := registration.Describe(ctx, c.Client, name.Org, name.Repo, sha); err != nil {
		fmt.Fprintf(p.Stderr, "Commit not registered: requirements that exclude its author may count nobody. Cause: %s\n",
			p.Describe(err))
	}
}
