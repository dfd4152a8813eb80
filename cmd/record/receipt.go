package record

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/await"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/atomicfile"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof/receipt"
)

// A receiptRequest says which receipt is requested, and where it goes.
type receiptRequest struct {
	state  ledger.State
	target string
	out    string // file name
	wait   time.Duration
}

func newReceipt(p *cli.Program) *cobra.Command {
	var r receiptRequest
	command := p.Takes(&cobra.Command{
		Use:   "receipt",
		Short: "Get a signed receipt that a commit has reached a state",
		Long: `Prints a receipt for a commit, by default HEAD: a signed statement that the
commit had reached a state, with the digests of the evidence that counted, and
proofs that the org's transparency log has what it rests on. With the key of the
log, others can verify it without the server: see docs/receipts.md.

A receipt says what the ledger decided at a time, not that it would decide the
same now. It is valid for a day.

Without --state, it is for the present state, which must be ATTESTED, PROMOTABLE
or DEPLOYED. In a CI job, the commit is by default that of the job; see
'ledgerd ci'.

The log covers new events within a second. The command waits for that, up to
--wait. The server signs the log if its base_url is set.

EXIT STATUS
  0  OK
  1  error (server unreachable, request refused, or not in the log in time)
  2  usage error
  4  the commit has not reached the state`,
		Example: `  ledgerd receipt acme/api --state PROMOTABLE --out receipt.json
  ledgerd receipt acme/api adbc8813901b --state ATTESTED --target release/2.x`,
		RunE: p.OnArg(func(ctx context.Context, c *cli.Connection, name cli.RepoName, rev string) error {
			job := detectJob()
			ofJob, err := job.commit(ctx)
			if err != nil && rev == "" {
				return err
			}
			sha, err := gitrepo.Find(ctx, cmp.Or(rev, ofJob))
			if err != nil {
				return err
			}
			if rev == "" {
				job.log(p)
			}
			return r.run(ctx, p, c, name, sha)
		}),
	}, cli.RepoArg, cli.RevArg)

	flags := command.Flags()
	flagvalue.StateVar(command, &r.state, "state", "state that must have been reached")
	flags.StringVar(&r.target, "target", "", "evaluate the requirements for this target `branch` alone")
	flags.StringVar(&r.out, "out", "", "write the receipt to this `file`")
	r.wait = 10 * time.Second
	flags.Var(flagvalue.Duration(&r.wait), "wait", "how long to wait until the log covers what the receipt rests on")
	return command
}

// run gets the receipt, and prints it or writes it to a file.
func (r receiptRequest) run(
	ctx context.Context, p *cli.Program, c *cli.Connection, name cli.RepoName, sha string,
) error {
	var state *ledger.State
	if r.state != ledger.Draft {
		state = &r.state
	}
	if err := c.Settle(ctx); err != nil {
		return err
	}
	got, err := r.await(ctx, func(ctx context.Context) (ledger.Receipt, error) {
		return c.Receipt(ctx, name.Org, name.Repo, sha, state, r.target)
	})
	if client.CodeOf(err) == ledger.CodeStateNotReached {
		return cli.Exitf(cli.ExitNotReached, "%w", err)
	}
	if err != nil {
		return err
	}

	text, err := json.Marshal(got)
	if err != nil {
		return fmt.Errorf("encode the receipt: %w", err)
	}
	text = append(text, '\n')
	if r.out == "" {
		return p.Print(got, func() { _, _ = p.Stdout.Exact().Write(text) })
	}
	says, err := receipt.Read(got.Envelope)
	if err != nil {
		return err
	}
	file, err := atomicfile.Create(r.out, 0o644)
	if err != nil {
		return err
	}
	if err := file.Write(text); err != nil {
		return err
	}
	terminal.Printf(p.Hints(), "Wrote %s: %s had reached %s. It is valid until %s.\n", r.out, name.At(says.Commit),
		says.State,
		says.ValidUntil)
	return nil
}

// await gets a receipt until the log covers what it rests on, or the wait is over.
func (r receiptRequest) await(
	ctx context.Context, get func(context.Context) (ledger.Receipt, error),
) (v ledger.Receipt, err error) {
	type result struct {
		receipt ledger.Receipt
		pending error
	}
	got, err := await.Poll[result]{
		First: 200 * time.Millisecond, Last: time.Second, For: r.wait,
		Look: func(ctx context.Context) (result, bool, error) {
			v, err := get(ctx)
			if client.CodeOf(err) == ledger.CodeNotInCheckpoint {
				return result{pending: err}, false, nil
			}
			return result{receipt: v}, true, err
		},
	}.Run(ctx)
	return got.receipt, cmp.Or(err, got.pending)
}
