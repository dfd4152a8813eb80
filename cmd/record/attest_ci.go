package record

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/ci/idtoken"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/signing"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/ca"
	"github.com/ledgerd/ledgerd/ledger/exchange"
)

// A jobSigner signs with a key that exists only after the command, and that the server certifies
// for the CI job.
type jobSigner struct {
	location cli.Location
	org      string
	source   *idtoken.Source
}

// newJobSigner returns the signer of the job in an org. It checks as much as it can without a token
// of the job, which the command could steal. needsToken reports whether an API token is needed
// before the command.
func newJobSigner(p *cli.Program, command *cobra.Command, org string, needsToken bool) (*jobSigner, error) {
	l, err := p.Locate(command)
	if err != nil {
		return nil, err
	}
	switch {
	case l.URL == "":
		return nil, cli.Usagef("--ci needs a server: set LEDGERD_URL or --server")
	case needsToken && l.Token == "":
		return nil, cli.Usagef("--require-state and deploy with --ci need an API token: the job gets its own only after " +
			"the command (set LEDGERD_TOKEN, or run 'ledgerd gate' in a step before)")
	}
	j := &jobSigner{location: l, org: org}
	j.source, err = idtoken.Find(os.Getenv, j.audience())
	return j, err
}

// audience returns the audience of tokens for the org.
func (j *jobSigner) audience() string {
	return exchange.Audience(strings.TrimRight(j.location.URL, "/"), j.org)
}

// sign gets a token of the job and a certificate for a new key. If no API token is set, it also
// gets one for the job.
func (j *jobSigner) sign(ctx context.Context, p *cli.Program) (*signing.Signer, error) {
	key, err := signing.NewEphemeralKey()
	if err != nil {
		return nil, err
	}
	n := ca.NewCertificate{}
	if n.CSR, err = key.Request(); err != nil {
		return nil, err
	}
	if n.Token, err = j.source.Token(ctx, j.audience()); err != nil {
		return nil, err
	}
	if j.location.Token == "" {
		n.Scope = ledger.Write
	}

	var c ca.Certificate
	err = j.location.Use(ctx, func(ctx context.Context, conn *cli.Connection) (err error) {
		c, err = conn.Certify(ctx, j.org, n)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("get a certificate: %w", err)
	}
	if c.APIToken != "" {
		j.location.Token = c.APIToken
	}
	terminal.Printf(p.Hints(), "Signing as %s, with a certificate until %s\n", terminal.Printable(c.DN), c.NotAfter)
	return key.Signer(c.Certificate)
}
