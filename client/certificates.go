package client

import (
	"context"

	"github.com/ledgerd/ledgerd/ledger/ca"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// CA returns the root of the CA of a purpose of an org.
func (c *Client) CA(ctx context.Context, org string, p ca.Purpose) (identity.Identity, error) {
	return get[identity.Identity](ctx, c, pathOf("orgs", org, p.Name()))
}

// CreateCA creates the CA of an org for a purpose, or replaces it, and returns its root. It needs
// admin scope.
func (c *Client) CreateCA(ctx context.Context, org string, p ca.Purpose, n ca.NewAuthority) (identity.Identity, error) {
	return post[identity.Identity](ctx, c, pathOf("orgs", org, p.Name()), n)
}

// RetireCA ends the CA of a purpose of an org, and revokes its root. It needs admin scope.
func (c *Client) RetireCA(ctx context.Context, org string, p ca.Purpose) error {
	return c.remove(ctx, pathOf("orgs", org, p.Name()))
}

// Certify requests a certificate for a CI job. It needs no API token: the request has the OIDC
// token of the job.
func (c *Client) Certify(ctx context.Context, org string, n ca.NewCertificate) (ca.Certificate, error) {
	return post[ca.Certificate](ctx, c, pathOf("orgs", org, "certificates"), n)
}
