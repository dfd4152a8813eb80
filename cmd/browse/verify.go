package browse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/seen"
	"github.com/ledgerd/ledgerd/cmd/internal/verify"
	"github.com/ledgerd/ledgerd/internal/buildinfo"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof/trustpolicy"
	checks "github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// verifyHelp is the part of the help that all commands of verify have.
const verifyHelp = `
The checkpoint of the log is compared with the one that was seen the last time,
which is stored under XDG_STATE_HOME or ~/.local/state. At the first contact
there is nothing to compare with, and the key of the log is taken from the
server, unless --policy has it. A log that has lost events, or shows others, is
refused, and both checkpoints are stored. A log that says that it replaces the
one that was seen is refused, too, unless --accept-epoch is given.

EXIT STATUS
  0  no check has failed
  1  error (server unreachable or request refused)
  2  usage error
  3  no check has failed, but some that were asked for could not be made
  4  a check has failed`

// A verification is what the flags of verify say.
type verification struct {
	policy string
	keys   string
	maxAge time.Duration
	other  string // file or URL
	accept bool   // a new epoch of the log

	rederive bool
}

func newVerifyAttestation(p *cli.Program) *cobra.Command {
	var v verification
	command := p.Takes(&cobra.Command{
		Use:   "attestation",
		Short: "Verify the signature of an attestation, and that it is in the log",
		Long: `Checks that a trusted key has signed the attestation, that the ledger shows what
was signed, and that the event of its recording is in the log of the org.
` + verifyHelp,
		Example: `  ledgerd verify attestation acme/api att_01JD3X0V6Q8Z2M4N5P7R9T1W3Y
  ledgerd verify attestation att_01JD3X0V6Q8Z2M4N5P7R9T1W3Y --keys keys.json --policy policy`,
		RunE: p.OnArg(func(ctx context.Context, c *cli.Connection, name cli.RepoName, id string) error {
			return v.run(ctx, p, p.Command, c, name.Org, "attestation", id, func(s *verify.Session) (checks.Report, error) {
				return s.Attestation(ctx, name.Repo, id)
			})
		}),
	}, cli.RepoArg, "ID")
	v.addFlags(command)
	v.addKeys(command)
	return command
}

func newVerifyEvent(p *cli.Program) *cobra.Command {
	var v verification
	command := p.ForOrg(&cobra.Command{
		Use:   "event",
		Short: "Verify that an event is in the log",
		Long: `Checks that the body of an event is the one that the log of the org commits to.
` + verifyHelp,
		Example: `  ledgerd verify event evt_01KAJ8Q0M6R4YB0J3X5T9ZC2DE --org acme`,
	}, func(ctx context.Context, c *cli.Connection, org string, args []string) error {
		return v.run(ctx, p, p.Command, c, org, "event", args[0], func(s *verify.Session) (checks.Report, error) {
			return s.Event(ctx, args[0])
		})
	}, "ID")
	v.addFlags(command)
	return command
}

func newVerifyCommit(p *cli.Program) *cobra.Command {
	var v verification
	command := p.Takes(&cobra.Command{
		Use:   "commit",
		Short: "Verify the attestations of a commit, and its state by the events in the log",
		Long: `Reads all events in the log of the org, and checks those of the commit, by
default HEAD: the attestations as 'ledgerd verify attestation' does, that the
ledger lists all of them, and that the state follows from the events. With
--rederive, reads what 'ledgerd verify repo' does, and derives the state again;
in a clone of the repo also what rests on the history of its commits.
` + verifyHelp,
		Example: `  ledgerd verify commit acme/api HEAD
  ledgerd verify commit acme/api HEAD --rederive`,
		RunE: p.OnArg(func(ctx context.Context, c *cli.Connection, name cli.RepoName, rev string) error {
			sha, err := gitrepo.Find(ctx, cmp.Or(rev, "HEAD"))
			if err != nil {
				return err
			}
			return v.run(ctx, p, p.Command, c, name.Org, "commit", sha, func(s *verify.Session) (checks.Report, error) {
				return s.Commit(ctx, name.Repo, sha)
			})
		}),
	}, cli.RepoArg, cli.RevArg)
	v.addFlags(command)
	v.addStates(command)
	return command
}

func newVerifyRepo(p *cli.Program) *cobra.Command {
	var v verification
	command := p.Takes(&cobra.Command{
		Use:   "repo",
		Short: "Verify all that the ledger shows of a repo by the events in the log",
		Long: `Checks the bodies of all events in the log of the org that the scope of the
token permits to read and, for the repo, the attestations as
'ledgerd verify attestation' does, that the ledger lists exactly those in the
log, and that the states of all commits and the policy follow from the events.
Events of the type audit need the scope admin. It takes a request for each event,
and two for each attestation. With --rederive, and one for each commit, derives
the states again; in a clone of the repo also those that rest on the history of
its commits, such as of merges.
` + verifyHelp,
		Example: "  ledgerd verify repo acme/api --keys keys.json --policy policy --max-age 2h",
		RunE: func(command *cobra.Command, args []string) error {
			return p.WithRepo(command, args, func(ctx context.Context, c *cli.Connection, name cli.RepoName) error {
				return v.run(ctx, p, command, c, name.Org, "repo", name.String(), func(s *verify.Session) (checks.Report, error) {
					return s.Repo(ctx, name.Repo)
				})
			})
		},
	}, cli.RepoArg)
	v.addFlags(command)
	v.addStates(command)
	return command
}

func (v *verification) addKeys(command *cobra.Command) {
	command.Flags().StringVar(&v.keys, "keys", "", "`file` with the trusted keys of signers: PEM, SSH public keys, or "+
		"the output of 'ledgerd identity list -o json' (default: as the ledger lists them)")
}

// addStates adds the flags of commands that verify states.
func (v *verification) addStates(command *cobra.Command) {
	v.addKeys(command)
	command.Flags().BoolVar(&v.rederive, "rederive", false, "derive states again from the attestations, contracts and "+
		"identities in the log")
}

func (v *verification) addPolicy(command *cobra.Command) {
	command.Flags().StringVar(&v.policy, "policy", "", "trust policy `file` (C2SP tlog-policy): keys of logs, and the "+
		"witnesses that must have cosigned the checkpoint")
}

func (v *verification) addFlags(command *cobra.Command) {
	v.addPolicy(command)
	flags := command.Flags()
	flags.StringVar(&v.other, "compare", "", "compare with how others see the log: a `file` with a checkpoint, the URL "+
		"of one, or that of another server")
	flags.BoolVar(&v.accept, "accept-epoch", false, "accept a log that replaces the one that was seen before, and "+
		"remember it")
	flags.Var(flagvalue.Duration(&v.maxAge), "max-age",
		"how old the checkpoint may be, by the cosignatures that --policy requires")
}

// run verifies a subject in a session, prints the report, and returns an error with the exit
// status if it is not verified, or not completely.
func (v *verification) run(ctx context.Context, p *cli.Program, command *cobra.Command, c *cli.Connection,
	org, kind, id string, subject func(*verify.Session) (checks.Report, error),
) error {
	o, err := v.options(p, command, org)
	if err != nil {
		return err
	}
	if v.rederive {
		useClone(ctx, p, &o)
	}

	progress := p.NewProgress()
	o.Progress = func(done, total int64) { progress.Show("reading the events of the log", done, total) }
	s, failed, err := verify.Begin(ctx, c.Client, o)
	report := checks.NewReport(kind, id, failed)
	if err == nil && s != nil {
		report, err = subject(s)
		progress.Clear()
	}
	if another, ok := errors.AsType[*client.AnotherError](err); ok {
		report, err = checks.NewReport(kind, id, []checks.Check{checks.Failure(checks.CheckRecord, "%v", another)}), nil
	}
	if err != nil {
		return err
	}
	return show(p, report)
}

// useClone sets Objects if the current folder is in a clone. If git cannot use the clone, it prints a warning: most
// states do not depend on objects.
func useClone(ctx context.Context, p *cli.Program, o *verify.Options) {
	git := gitrepo.Repo{Dir: "."}
	exists, err := git.Exists(ctx)
	switch {
	case err != nil:
		terminal.Printf(p.Hints(), "ledgerd: warning: no commit objects are read from the clone: %s\n",
			terminal.Printable(err.Error()))
	case exists:
		o.Objects = git.CommitObjects
	}
}

// show prints a report, and returns an error with the exit status if a check has failed, or was
// asked for and not made.
func show(p *cli.Program, report checks.Report) error {
	err := p.Print(report, func() { printReport(p, report) })
	switch {
	case err != nil:
		return err
	case !report.Verified:
		return &cli.ExitError{Status: cli.ExitNotReached}
	case !report.Complete:
		return &cli.ExitError{Status: cli.ExitIncomplete}
	}
	return nil
}

// options reads the files that the flags name.
func (v *verification) options(p *cli.Program, command *cobra.Command, org string) (o verify.Options, err error) {
	l, err := p.Locate(command)
	if err != nil {
		return o, err
	}
	o = verify.Options{Server: l.URL, Org: org, MaxAge: v.maxAge, AcceptEpoch: v.accept, Rederive: v.rederive,
		Now: ledger.TimeOf(time.Now())}
	if o.Server == "" {
		if o.Server, err = l.Settings.Database.Absolute(); err != nil {
			return o, err
		}
	}
	folder, err := seen.Folder()
	if err != nil {
		return o, err
	}
	o.Memory = seen.Open(folder)

	if v.policy != "" {
		text, err := p.ReadFile(v.policy)
		if err != nil {
			return o, err
		}
		if o.Policy, err = trustpolicy.Parse(text); err != nil {
			return o, fmt.Errorf("--policy %s: %w", v.policy, err)
		}
	}
	if v.maxAge > 0 && (o.Policy == nil || o.Policy.Quorum == trustpolicy.None) {
		return o, cli.Usagef("--max-age requires --policy with a quorum: only witnesses date a checkpoint")
	}
	if o.Compare, err = v.view(p, org); err != nil || v.keys == "" {
		return o, err
	}
	text, err := p.ReadFile(v.keys)
	if err != nil {
		return o, err
	}
	keys, err := checks.ParseKeys(text)
	if err != nil {
		return o, fmt.Errorf("--keys %s: %w", v.keys, err)
	}
	o.Keys = &keys
	return o, nil
}

// view returns how others see the log, or nil.
func (v *verification) view(p *cli.Program, org string) (*verify.View, error) {
	if v.other == "" {
		return nil, nil
	}
	if !strings.Contains(v.other, "://") {
		text, err := p.ReadFile(v.other)
		return verify.FileView(v.other, text), err
	}
	if verify.IsCheckpointURL(v.other) {
		return verify.URLView(v.other), nil
	}

	token, err := cli.TokenOf(v.other, org)
	if err != nil {
		return nil, err
	}
	c, err := client.New(v.other, client.Options{Token: token, UserAgent: buildinfo.UserAgent()})
	if err != nil {
		return nil, cli.Usagef("--compare: %w", err)
	}
	return verify.ServerView(v.other, org, c), nil
}

// printReport prints a line for each check.
func printReport(p *cli.Program, r checks.Report) {
	for _, c := range r.Checks {
		result, style := "ok", terminal.Green
		switch c.Status {
		case checks.Failed:
			result, style = "FAILED", terminal.Red
		case checks.NotChecked:
			result, style = "not checked", terminal.Yellow
		}
		terminal.Printf(p.Stdout, "%-12s %s: %s\n", c.Name, p.Stdout.Paint(style, result), terminal.Clean(c.Detail))
		for _, file := range c.Evidence {
			terminal.Printf(p.Stdout, "%-12s saved %s\n", "", terminal.Clean(file))
		}
	}

	mark, style := "✓", terminal.Green
	switch {
	case !r.Verified:
		mark, style = "✗ NOT VERIFIED", terminal.Red
	case !r.Complete:
		mark, style = "? INCOMPLETE: not everything could be checked", terminal.Yellow
	}
	terminal.Printf(p.Stdout, "%s %s %s\n", r.Kind, terminal.Clean(r.ID), p.Stdout.Paint(style, mark))
}
