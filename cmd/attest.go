package cmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/atomicfile"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/internal/signing"
	"github.com/ledgerd/ledgerd/internal/subprocess"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// An attestRequest is what the flags of attest ask for.
type attestRequest struct {
	repo        repoName
	commit      string // a git rev, then the sha it names
	predicate   string
	status      ledger.Status
	statement   string // a file
	envelope    string // a file
	key, cert   string // files
	out         string // a file
	annotations []string
	command     []string
}

func newAttest(p *program) *cobra.Command {
	var a attestRequest
	command := &cobra.Command{
		Use:   "attest ORG/REPO [flags] -- COMMAND [ARG]...",
		Short: "Run a command and record how it went, signed",
		Long: `Runs a command, signs whether it passed and how long it took, and records that
about a commit. The command's input, output and exit status are passed through;
so are the signals that ledgerd gets. It does not get LEDGERD_TOKEN and
LEDGERD_TOKEN_FILE: what is tested need not be able to record.

What a signal stopped has neither passed nor failed: where ledgerd is told to
stop, or SIGINT, SIGTERM or SIGHUP ends the command, nothing is recorded.

Without a command it records --status as it is, a --statement that somebody else
wrote, or an --envelope that somebody else signed.

With --cert the statement goes out as a Sigstore bundle that holds the
certificate, else as a DSSE envelope. The private key must not be encrypted.

EXIT STATUS
  that of the command, where one was run and did not pass; 127 if it could not
  be started; 128 and the signal's number if one stopped it
  0  recorded (with --out: written)
  1  not recorded, though the command, if any, passed
  2  wrong usage; nothing was run`,
		Example: `  ledgerd attest acme/api --commit HEAD --predicate test:go --key ci.key -- go test ./...
  ledgerd attest acme/api --commit HEAD --predicate review:code --status pass --key alice.key --cert alice.crt
  ledgerd attest acme/api --statement provenance.json --key ci.key
  ledgerd attest acme/api --envelope bundle.json
  ledgerd attest acme/api --commit HEAD --predicate test:go --key ci.key --out envelope.json -- go test ./...`,
		Args: a.takeArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := a.check(); err != nil {
				return err
			}
			return p.attest(command, &a)
		},
	}
	flags := command.Flags()
	flags.StringVar(&a.commit, "commit", "", "commit that it is about, a sha or a git `rev`; with --statement and "+
		"--envelope it is only compared")
	flags.StringVar(&a.predicate, "predicate", "", "`name` of what it says, such as test:go")
	flags.Var(statusFlag(&a.status), "status", "record this status, without a command")
	flags.StringVar(&a.statement, "statement", "", "sign the in-toto statement in this `file`")
	flags.StringVar(&a.envelope, "envelope", "", "record the signed envelope in this `file`")
	flags.StringVar(&a.key, "key", "", "private key to sign with, a PEM `file`")
	flags.StringVar(&a.cert, "cert", "", "its certificate, and those up to the root, a PEM `file`")
	flags.StringVar(&a.out, "out", "", "write the signed envelope to this `file`, - for standard output, and speak "+
		"to no server")
	flags.StringArrayVar(&a.annotations, "annotation", nil, "`key=value` to add to the statement; may be given again")
	command.MarkFlagsMutuallyExclusive("status", "statement", "envelope")
	command.MarkFlagsMutuallyExclusive("out", "envelope")
	flagvalue.Complete(command, "status", statuses()...)
	return command
}

// takeArgs splits the arguments into the repo and the command to run.
func (a *attestRequest) takeArgs(command *cobra.Command, args []string) error {
	own := args
	if dash := command.ArgsLenAtDash(); dash >= 0 {
		own, a.command = args[:dash], args[dash:]
	}
	if len(own) == 0 {
		return errors.New("ORG/REPO is missing")
	}
	if len(own) > 1 {
		return fmt.Errorf("unexpected argument %q: the command to run comes after --", own[1])
	}
	var err error
	a.repo, err = parseRepoName(own[0])
	return err
}

// check reports flags that do not go together.
func (a *attestRequest) check() error {
	foreign := a.statement != "" || a.envelope != ""
	switch {
	case len(a.command) > 0 && (foreign || a.status != ""):
		return usagef("give a command to run, or --status, --statement or --envelope, not both")
	case len(a.command) == 0 && !foreign && a.status == "":
		return usagef("there is nothing to attest: give a command after --, or --status, --statement or --envelope")
	case foreign && (a.predicate != "" || len(a.annotations) > 0):
		return usagef("--predicate and --annotation do not go with --statement and --envelope: those say it themselves")
	case !foreign && a.commit == "":
		return usagef("--commit is missing")
	case !foreign && !ledger.IsPredicateName(a.predicate):
		return usagef("--predicate %q is no name of a predicate: use one such as test:go", a.predicate)
	case a.envelope != "" && (a.key != "" || a.cert != ""):
		return usagef("--key and --cert do not go with --envelope: it is signed already")
	case a.envelope == "" && a.key == "":
		return usagef("--key is missing")
	}
	for _, annotation := range a.annotations {
		if name, _, ok := strings.Cut(annotation, "="); !ok || name == "" {
			return usagef("--annotation %q is not of the form key=value", annotation)
		}
	}
	return nil
}

// attest makes the attestation and records it. All that can go wrong before
// the command runs is found out before: it may take long.
func (p *program) attest(command *cobra.Command, a *attestRequest) (err error) {
	ctx := command.Context()
	var s *signing.Signer
	if a.envelope == "" {
		if s, err = signing.Load(a.key, a.cert); err != nil {
			return err
		}
	}
	if a.commit != "" {
		if a.commit, err = gitrepo.Resolve(ctx, a.commit); err != nil {
			return err
		}
	}
	keep, discard, err := p.keeper(command, a, s)
	if err != nil {
		return err
	}
	defer discard()
	o := p.outcome(a)
	if o.Stopped != 0 {
		return a.exit(o, nil)
	}
	envelope, err := p.envelope(a, s, o)
	if err == nil {
		err = keep(ctx, o, envelope)
	}
	return a.exit(o, err)
}

// outcome runs the command, or returns the status that was given instead.
func (p *program) outcome(a *attestRequest) subprocess.Outcome {
	if len(a.command) == 0 {
		now := time.Now()
		return subprocess.Outcome{Status: a.status, Started: now, Finished: now}
	}
	return subprocess.Run(a.command, p.stdin, p.stdout, p.stderr)
}

// exit returns the error that attest ends with, where err is what kept the
// outcome from being recorded.
func (a *attestRequest) exit(o subprocess.Outcome, err error) error {
	if o.Err != nil {
		err = errors.Join(o.Err, err)
	}
	switch {
	case o.Stopped != 0:
		return &exitError{128 + int(o.Stopped), fmt.Errorf("stopped by a signal (%v): nothing is recorded", o.Stopped)}
	case o.Code != 0:
		return &exitError{o.Code, err}
	case err != nil && len(a.command) > 0:
		return fmt.Errorf("the command passed, but that is not recorded: %w", err)
	}
	return err
}

// A keep does with an envelope what was asked for.
type keep func(ctx context.Context, o subprocess.Outcome, envelope []byte) error

// keeper returns what writes the envelope to --out or records it, once it is
// sure that, as far as can be told now, this will work. What it began must be
// discarded, also after it was used.
func (p *program) keeper(command *cobra.Command, a *attestRequest, s *signing.Signer) (keep, func(), error) {
	if a.out == "-" {
		return func(_ context.Context, _ subprocess.Outcome, envelope []byte) error {
			_, err := p.stdout.Write(append(envelope, '\n'))
			return err
		}, func() {}, nil
	}
	if a.out != "" {
		file, err := atomicfile.Create(a.out, 0o644)
		if err != nil {
			return nil, nil, err
		}
		return func(_ context.Context, o subprocess.Outcome, envelope []byte) error {
			return p.writeEnvelope(file, a, o, envelope)
		}, file.Discard, nil
	}
	t, err := p.target(command)
	if err != nil {
		return nil, nil, err
	}
	err = t.use(command.Context(), func(ctx context.Context, c *connection) error { return a.mayRecord(ctx, c, s) })
	return func(ctx context.Context, _ subprocess.Outcome, envelope []byte) error {
		return p.recordEnvelope(ctx, t, a, envelope)
	}, func() {}, err
}

// mayRecord reports what would keep the ledger from taking what the command's
// outcome is signed as. Without a command the ledger itself tells at once.
func (a *attestRequest) mayRecord(ctx context.Context, c *connection, s *signing.Signer) error {
	if err := a.repo.mustExist(ctx, c); err != nil || len(a.command) == 0 {
		return err
	}
	if c.local == nil {
		own, err := c.OwnToken(ctx)
		if err != nil {
			return err
		}
		if own.Scope < ledger.Write {
			return fmt.Errorf("to record needs an API token with the scope write: this one, %q, has %s", own.Name, own.Scope)
		}
	}
	identities, err := client.Collect(c.Identities(ctx, a.repo.org), 0)
	if err != nil {
		return err
	}
	return s.CheckTrusted(identities, a.commit)
}

// envelope returns the signed envelope to record.
func (p *program) envelope(a *attestRequest, s *signing.Signer, o subprocess.Outcome) ([]byte, error) {
	if a.envelope != "" {
		return p.readFile(a.envelope)
	}
	if a.statement != "" {
		statement, err := p.readFile(a.statement)
		if err != nil {
			return nil, err
		}
		if err := s.CheckStatement(statement); err != nil {
			return nil, fmt.Errorf("%s: %w", a.statement, err)
		}
		return s.Sign(statement)
	}
	predicate := attestation.ResultPredicate{
		Predicate:  a.predicate,
		Result:     ledger.Result{Status: o.Status, DurationMS: o.Finished.Sub(o.Started).Milliseconds()},
		StartedOn:  ledger.TimeOf(o.Started),
		FinishedOn: ledger.TimeOf(o.Finished),
	}
	for _, annotation := range a.annotations {
		if predicate.Annotations == nil {
			predicate.Annotations = make(map[string]string)
		}
		name, value, _ := strings.Cut(annotation, "=")
		predicate.Annotations[name] = value
	}
	statement, err := attestation.NewStatement(a.repo.String(), a.commit, predicate)
	if err != nil {
		return nil, err
	}
	return s.Sign(statement)
}

func (p *program) writeEnvelope(file *atomicfile.File, a *attestRequest, o subprocess.Outcome, envelope []byte) error {
	if err := file.Write(envelope); err != nil {
		return err
	}
	what := a.statement
	if what == "" {
		what = fmt.Sprintf("%s %s", a.predicate, o.Status)
	}
	fmt.Fprintf(p.stderr, "signed %s into %s; record it with 'ledgerd attest %s --envelope %s'\n", what, a.out, a.repo,
		a.out)
	return nil
}

// recordEnvelope records the envelope and tells what has become of the commit.
func (p *program) recordEnvelope(ctx context.Context, t target, a *attestRequest, envelope []byte) error {
	return t.use(ctx, func(ctx context.Context, c *connection) error {
		record, created, err := c.Record(ctx, a.repo.org, a.repo.repo, envelope)
		if err != nil {
			return err
		}
		verb := "recorded"
		if !created {
			verb = "had been recorded"
		}
		state := "the commit's state cannot be read"
		if commit, err := c.Commit(ctx, record.Org, record.Repo, record.Commit); err == nil {
			state = "the commit is " + commit.State.String()
		}
		fmt.Fprintf(p.stderr, "%s %s (%v) of %s: %s, %s\n", terminal.Printable(record.Predicate), record.Result.Status,
			milliseconds(record.Result.DurationMS), a.repo.at(record.Commit), verb, state)
		if a.commit != "" && a.commit != record.Commit {
			return fmt.Errorf("that is not about commit %s, as --commit says", terminal.Short(a.commit))
		}
		return p.print(record, func() {})
	})
}
