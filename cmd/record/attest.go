package record

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/ci/idtoken"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/signing"
	"github.com/ledgerd/ledgerd/cmd/internal/subprocess"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/attestation/foreign"
)

func newAttest(p *cli.Program) *cobra.Command {
	var a attestRequest
	command := p.Takes(&cobra.Command{
		Use:   "attest [flags] -- COMMAND [ARG]...",
		Short: "Run a command and record a signed result",
		Long: `Runs a command and records a signed attestation about a commit: whether the
command passed, and how long it took. Input, output, signals and the exit status
of the command are passed through.

The command cannot read the API token or the key from ledgerd: LEDGERD_TOKEN,
LEDGERD_TOKEN_FILE and LEDGERD_ID_TOKEN are removed from its environment, and on
Linux the memory of ledgerd is closed to it. But it can read --token, and every
file that you can. If you do not trust it, run it in a step without secrets and
sign in another one, with --status. See SECURITY.md.

If a signal stops ledgerd, or SIGINT, SIGTERM or SIGHUP ends the command, or if
it cannot be started, nothing is recorded: it has neither passed nor failed.

Without a command, attest records --status, or the --statement in a file, or an
--envelope that is already signed. The file may also have up to 100 envelopes or
bundles, as JSON Lines, a JSON array, or the list that npm or GitHub returns for
an artifact. One line is printed for each, and the status is 1 if any of them was
not recorded. Recording a file again records nothing twice.

In a git work tree that has the commit, attest first registers it with the commit
object, which proves its author, committer and co-authors, for requirements that
exclude them. Unlike 'ledgerd commit
register', it reports no branch and no changes.
If that is refused, it prints a warning and goes on. A review (--predicate
review:NAME) signs the commits that it is about, as 'ledgerd review' does.

In a CI job, the commit is by default the head of the pull request or the commit
of the job, and the page of the run is added as --annotation run_url; see
'ledgerd ci'. A command must run on this commit or on a merge of it.

With --squash-of or --merge-of, attest claims that the commit is a clean merge:
that its tree is exactly what git (2.38 or later) makes of its first parent and
the given commit, without conflicts. If it is not, the paths that differ are
named and nothing is signed. Configuration, attributes and merge drivers are
ignored. Evidence about the given commit then carries to requirements with
carry: ["merge"], as long as the first parent meets them, too; see
docs/evidence.md. All three commits must be in the work tree, which registers
them. 'commit register --key' finds merges by itself.

With --artifact-index, the statement names the images of a multi-arch image, so
that 'ledgerd gate --artifact' knows the commit of each platform: give it what
'docker buildx imagetools inspect --raw IMAGE' prints. Who may link artifacts is
up to the policy.

With --ci it signs as the CI job, on GitHub, GitLab or Forgejo, and needs neither
a key nor an API token. After the command, it gets the OpenID Connect token of
the job, by which the server certifies a new key for ten minutes, and gives an
API token for the repo. LEDGERD_URL must be the base_url of the server. The
variables with which tokens are requested are removed from the environment of
the command; but a command that you do not trust can get them from the shell, so
sign in a job of its own. See docs/identities.md.

With --cert the statement is sent as a Sigstore bundle with the certificate,
otherwise as a DSSE envelope. --key is a private key in PEM or of OpenSSH; if
that is encrypted, attest asks for its passphrase on the terminal. If --key is a
public key, ssh-agent (SSH_AUTH_SOCK) signs, and the command can use it, too.

A deployment (--predicate deploy:ENV) is 'ledgerd deploy': use that. One that
does not count is recorded as a violation, with the reasons. With --require-state
PROMOTABLE, no command is run and nothing is signed if the commit has not reached
the state, was rolled back from ENV, or ships what is not covered.

EXIT STATUS
  The exit status of the command if it failed; 127 if it could not be started;
  128 plus the signal number if a signal stopped it. Otherwise:
  0  recorded (with --out: written)
  1  not recorded; the command, if any, passed
  2  usage error; no command was run
  4  the commit has not reached --require-state; no command was run`,
		Example: `  ledgerd attest acme/api --commit HEAD --predicate test:go --key ci.key -- go test ./...
  ledgerd attest acme/api --predicate build:image --status pass --artifact-index index.json --key ci.key
  ledgerd attest acme/api --commit HEAD --predicate review:code --status pass --key alice.key --cert alice.crt
  ledgerd attest acme/api --ci --predicate test:go -- go test ./...
  ledgerd attest acme/api --commit HEAD --squash-of feature/login --key mainline.key
  ledgerd attest acme/api --statement provenance.json --key ci.key
  ledgerd attest acme/api --envelope bundle.json
  curl -s https://registry.npmjs.org/-/npm/v1/attestations/app@1.0.0 | ledgerd attest acme/api --envelope -
  ledgerd attest acme/api --commit HEAD --predicate test:go --key ci.key --out envelope.json -- go test ./...`,
		Args: a.takeArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			a.needsState = command.Flags().Changed("require-state")
			a.environment, _ = ledger.EnvironmentOf(a.predicate)
			if _, err := a.prepare(p, command); err != nil {
				return err
			}
			return attest(p, command, &a)
		},
	}, cli.RepoArg)

	flags := command.Flags()
	flags.StringVar(&a.commit, "commit", "", "commit to attest, a sha or a git `rev` (default HEAD); with --statement or "+
		"--envelope, the commit it must be about")
	flags.StringVar(&a.predicate, "predicate", "", "`name` of the predicate, such as test:go")
	flagvalue.ResultVar(command, &a.status, "record this status instead of running a command")
	flags.StringVar(&a.statement, "statement", "", "sign and record the in-toto statement in this `file`")
	flags.StringVar(&a.index, "artifact-index", "", "link the images of the OCI image index, or Docker manifest list, in "+
		"this `file` with the commit")
	flags.StringVar(&a.envelope, "envelope", "", "record the signed envelope, or all envelopes, in this `file`")
	a.signingFlags(command)
	flags.StringVar(&a.out, "out", "", "write the envelope to this `file` (- for standard output) instead of "+
		"recording it")
	flagvalue.StateVar(command, &a.required, "require-state", "run and sign nothing unless the commit has reached this "+
		"state")
	flagvalue.Exclude(command, "out", "envelope")
	a.claim.Flags(command)
	flagvalue.RequireRev(command, "commit", "merge-of", "squash-of")

	return command
}

// signingFlags defines the flags that say who signs.
func (a *attestRequest) signingFlags(command *cobra.Command) {
	flags := command.Flags()
	a.signerFiles.flags(command)
	flags.BoolVar(&a.ci, "ci", false, "sign as the CI job, without a key: the server certifies a new one for ten minutes")
	flags.StringArrayVar(&a.annotations, "annotation", nil, "`key=value` to add to the statement; repeatable")
}

// prepare completes and checks the arguments. It returns those after ORG/REPO.
func (a *attestRequest) prepare(p *cli.Program, command *cobra.Command) (rest []string, err error) {
	job := detectJob()
	if err = a.complete(command.Context(), p, job); err == nil {
		err = a.check()
	}
	if a.ci {
		p.NeedNoToken()
	}
	if err == nil {
		a.repo, rest, err = p.Repo(command, a.names)
	}
	if err == nil {
		job.log(p)
	}
	return rest, err
}

// attest creates the attestation and records it, or writes it to --out. It checks
// as much as it can before it runs the command, which may take long.
func attest(p *cli.Program, command *cobra.Command, a *attestRequest) (err error) {
	ctx := command.Context()

	s, job, err := a.signer(p, command)
	if err != nil {
		return err
	}
	if len(a.command) > 0 && p.Global.Token != "" {
		fmt.Fprintln(p.Stderr, "ledgerd: the command can read --token: use LEDGERD_TOKEN or LEDGERD_TOKEN_FILE instead")
	}
	if a.commit != "" {
		if a.commit, err = gitrepo.Resolve(ctx, a.commit); err != nil {
			return err
		}
	}
	for _, rev := range []*string{&a.base, &a.from} {
		if *rev == "" {
			continue
		}
		if *rev, err = gitrepo.Resolve(ctx, *rev); err != nil {
			return err
		}
	}
	if a.index != "" {
		if a.artifacts, err = indexedImages(p, a.index); err != nil {
			return err
		}
	}
	if a.needsState {
		if err := requireState(p, command, a, s); err != nil {
			return err
		}
	}
	if a.claim.IsSet() {
		a.status = ledger.Pass // or else nothing is signed
		if a.claimed, a.predicate, err = a.claim.Statement(ctx, a.repo.String(), a.commit); err != nil {
			return err
		}
	}
	save, discard, err := newSaver(p, command, a, s, job)
	if err != nil {
		return err
	}
	defer discard()
	if a.isReview() {
		if err := a.showReviewed(ctx, p); err != nil {
			return err
		}
	}

	o := runCommand(p, a)
	switch {
	case o.NotStarted:
		return cli.Exitf(o.Code, "cannot start the command: %w: nothing was recorded", o.Err)
	case o.Stopped != 0:
		return cli.Exitf(128+int(o.Stopped), "stopped by a signal (%v): nothing was recorded", o.Stopped)
	}
	if job != nil {
		if s, err = job.sign(ctx, p); err != nil {
			return a.exit(o, err)
		}
	}
	envelope, err := newEnvelope(ctx, p, a, s, o)
	if err == nil {
		err = save(ctx, o, envelope)
	}
	return a.exit(o, err)
}

// signer returns what signs the statement: a key, or the CI job after the command. Neither signs
// an envelope again.
func (a *attestRequest) signer(p *cli.Program, command *cobra.Command) (s *signing.Signer, job *jobSigner, err error) {
	switch {
	case a.ci:
		job, err = newJobSigner(p, command, a.repo.Org, a.needsState)
	case a.envelope == "":
		s, err = a.load(p)
	}
	return s, job, err
}

// runCommand runs the command, if there is one. Otherwise it returns an outcome with
// --status.
func runCommand(p *cli.Program, a *attestRequest) subprocess.Outcome {
	if len(a.command) == 0 {
		now := time.Now()
		return subprocess.Outcome{Status: a.status, Started: now, Finished: now}
	}
	var secrets []string
	if a.ci {
		secrets = idtoken.Variables()
	}
	return subprocess.Run(a.command, p.Stdin, p.RawStdout, p.RawStderr, secrets...)
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

// newEnvelope returns the signed envelope to record.
func newEnvelope(
	ctx context.Context, p *cli.Program, a *attestRequest, s *signing.Signer, o subprocess.Outcome,
) ([]byte, error) {
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
		if err := checkStatement(ctx, statement); err != nil {
			return nil, fmt.Errorf("%s: %w", a.statement, err)
		}
		return s.Sign(statement)
	}

	statement, err := signing.NewStatement(a.repo.String(), a.commit, signing.Run{
		Artifacts: a.artifacts,
		Predicate: a.predicate, Base: a.base, Annotations: a.annotations,
		Status: o.Status, Started: o.Started, Finished: o.Finished,
		IsAttempt: a.environment != "" && len(a.command) > 0 && o.Status.IsFailure(), Again: a.again,
	})
	if err != nil {
		return nil, err
	}
	return s.Sign(statement)
}

// checkStatement returns an error if the ledger would refuse a statement, or if the document is
// something else.
func checkStatement(ctx context.Context, statement []byte) error {
	commit, err := signing.CheckStatement(statement)
	switch {
	case err == nil && commit == "": // the ledger knows it
		return nil
	case err == nil:
		return checkIsCommit(ctx, commit)
	}
	if what := foreign.Describe(statement); what != "" {
		return fmt.Errorf("the document is %s", what)
	}
	if _, parseErr := attestation.ParseEnvelope(statement); parseErr == nil {
		return errors.New("the document is signed already (record it with --envelope)")
	}
	return err
}

// checkIsCommit returns an error if the ID in a statement is that of another object of the work tree.
func checkIsCommit(ctx context.Context, id string) error {
	sha, err := gitrepo.Find(ctx, id)
	if err == nil && sha != id {
		err = fmt.Errorf("%q is an annotated tag: name its commit %s", id, ledger.Short(sha))
	}
	return err
}
