package browse

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/verify"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof/receipt"
	checks "github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// A receiptVerification is what the flags of verify receipt say.
type receiptVerification struct {
	verification
	repo, commit, target, digest string
	state                        ledger.State
	key                          string // file
	at                           ledger.Time
	offline                      bool
}

func newVerifyReceipt(p *cli.Program) *cobra.Command {
	var v receiptVerification
	command := p.Takes(&cobra.Command{
		Use:   "receipt",
		Short: "Verify a receipt, with or without the server",
		Long: `Checks that a key that the log of the org announces has signed the receipt, that
the log has what it rests on, that it is still valid, and that it is for what
--repo, --commit and --state say. FILE is what 'ledgerd receipt' has written, or
- for the standard input.

With --offline, the key of the log must be in --policy or have been seen before.
Then the witnesses must have cosigned the checkpoint of the receipt itself, and
it is not compared with the newest checkpoint of the log.
` + verifyHelp,
		Example: `  ledgerd verify receipt receipt.json --repo acme/api --commit $SHA --state PROMOTABLE
  ledgerd verify receipt receipt.json --offline --policy policy`,
		RunE: func(command *cobra.Command, args []string) error { return v.run(p, command, args[0]) },
	}, "FILE")
	v.addFlags(command)
	flags := command.Flags()
	flags.StringVar(&v.repo, "repo", "", "`repo` that the receipt must be for, as ORG/REPO")
	flags.StringVar(&v.commit, "commit", "", "full ID of the `commit` that it must be for")
	flagvalue.StateVar(command, &v.state, "state", "state that the commit must have reached")
	flags.StringVar(&v.target, "target", "", "target `branch` that it must be for")
	flags.StringVar(&v.digest, "contract", "", "`digest` of the policy contract that it must rest on, with sha256:")
	flags.StringVar(&v.key, "key", "", "`file` with the only key of receipts that is trusted, in PEM")
	flags.Var(&flagvalue.Parsed[ledger.Time]{Value: &v.at, Kind: "TIME", Parse: ledger.ParseSince}, "at",
		"time at which the receipt must have been valid (default now)")
	flags.BoolVar(&v.offline, "offline", false, "verify without the server")
	return command
}

func (v *receiptVerification) run(p *cli.Program, command *cobra.Command, file string) error {
	r, err := v.read(p, file)
	if err != nil {
		return err
	}
	at := v.at
	if at == 0 {
		at = ledger.TimeOf(time.Now())
	}
	if !v.offline {
		return p.WithOrg(command, r.Says.Org, func(ctx context.Context, c *cli.Connection, org string) error {
			return v.verification.run(ctx, p, command, c, org, "receipt", file, func(s *verify.Session) (checks.Report, error) {
				return s.Receipt(ctx, r, at)
			})
		})
	}

	if v.other != "" {
		return cli.Usagef("--offline and --compare are mutually exclusive")
	}
	o, err := v.options(p, command, r.Says.Org)
	if err != nil {
		return err
	}
	report, err := verify.Offline(o, r, at)
	if err != nil {
		return err
	}
	return show(p, report)
}

// read reads the receipt, and what it must be for.
func (v *receiptVerification) read(p *cli.Program, file string) (r checks.Receipt, err error) {
	text, err := p.ReadFile(file)
	if err != nil {
		return r, err
	}
	if r, err = checks.ParseReceipt(text); err != nil {
		return r, fmt.Errorf("%s is not a receipt: %w", file, err)
	}

	r.Want = receipt.Want{Commit: v.commit, State: v.state, Target: v.target, PolicyDigest: v.digest}
	if v.repo != "" {
		var ok bool
		if r.Want.Org, r.Want.Repo, ok = strings.Cut(v.repo, "/"); !ok || r.Want.Org == "" || r.Want.Repo == "" {
			return r, cli.Usagef("invalid --repo %q: use ORG/REPO, such as acme/api", v.repo)
		}
	}
	if v.commit != "" && !ledger.IsCommit(v.commit) {
		return r, cli.Usagef("invalid --commit %q: use the full ID", v.commit)
	}
	if v.key == "" {
		return r, nil
	}
	pinned, err := p.ReadFile(v.key)
	if err != nil {
		return r, err
	}
	if r.Key, err = receipt.ParsePublicKey(pinned); err != nil {
		return r, fmt.Errorf("--key %s: %w", v.key, err)
	}
	return r, nil
}
