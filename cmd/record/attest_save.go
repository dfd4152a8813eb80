package record

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/display"
	"github.com/ledgerd/ledgerd/cmd/internal/mergeclaim"
	"github.com/ledgerd/ledgerd/cmd/internal/signing"
	"github.com/ledgerd/ledgerd/cmd/internal/subprocess"
	"github.com/ledgerd/ledgerd/internal/atomicfile"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation/bulk"
)

// A saveFunc records an envelope or writes it to a file.
type saveFunc func(ctx context.Context, o subprocess.Outcome, envelope []byte) error

// newSaver returns a function that writes the envelope to --out or records it. It first
// checks, as far as possible, that this will succeed. The caller must always call the
// second function: it removes temporary files.
func newSaver(
	p *cli.Program, command *cobra.Command, a *attestRequest, s *signing.Signer, job *jobSigner,
) (saveFunc, func(), error) {
	if job != nil {
		return newJobSaver(p, command, a, job)
	}
	if a.out == "-" {
		return func(_ context.Context, _ subprocess.Outcome, envelope []byte) error {
			_, err := p.Stdout.Exact().Write(append(envelope, '\n'))
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
		if err := a.checkMayRecord(ctx, c, s); err != nil {
			return err
		}
		return a.readTarget(ctx, c)
	})
	return func(ctx context.Context, _ subprocess.Outcome, envelope []byte) error {
		return recordEnvelope(ctx, p, l, a, envelope)
	}, func() {}, err
}

// newJobSaver is newSaver, for a job. Without an API token, nothing can be checked before the command.
func newJobSaver(p *cli.Program, command *cobra.Command, a *attestRequest, j *jobSigner) (saveFunc, func(), error) {
	var err error
	if j.location.Token != "" {
		err = j.location.Use(command.Context(), func(ctx context.Context, c *cli.Connection) error {
			if err := a.checkMayRecord(ctx, c, nil); err != nil {
				return err
			}
			return a.readTarget(ctx, c)
		})
	}
	return func(ctx context.Context, _ subprocess.Outcome, envelope []byte) error {
		return recordEnvelope(ctx, p, j.location, a, envelope)
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
	if s == nil { // it is certified after the command
		return nil
	}
	identities, err := client.Collect(c.Identities(ctx, a.repo.Org), 0)
	if err != nil {
		return err
	}
	return s.CheckTrusted(identities, a.commit)
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
	terminal.Printf(p.Hints(), "Signed %s and wrote it to %s. To record it, run 'ledgerd attest %s --envelope %s'.\n",
		subject,
		a.out, a.repo, a.out)
	return nil
}

// recordEnvelope records the envelope and prints the commit's state. A file with several is
// recorded by a bulkRequest.
func recordEnvelope(ctx context.Context, p *cli.Program, l cli.Location, a *attestRequest, envelope []byte) error {
	items, err := bulk.Split(envelope)
	if err != nil {
		return fmt.Errorf("%s: %w", a.envelope, err)
	}
	return l.Use(ctx, func(ctx context.Context, c *cli.Connection) error {
		if items != nil {
			return bulkRequest{a.repo, a.commit, a.envelope}.record(ctx, p, c, envelope, items)
		}
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
			defer display.Uncounted(p.Stderr, commit, record)
		}
		terminal.Printf(p.Hints(), "%s %s %s (%v) on %s. State: %s\n", verb, terminal.Printable(record.Predicate),
			record.Result.Status, display.Milliseconds(record.Result.DurationMS), a.repo.At(record.Commit), state)
		printNotes(p, a.repo.At(record.Commit), record)

		if a.commit != "" && a.commit != record.Commit {
			return fmt.Errorf("the attestation is about commit %s, not about --commit %s", ledger.Short(record.Commit),
				ledger.Short(a.commit))
		}
		return p.Print(record, func() {})
	})
}
