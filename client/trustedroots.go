package client

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strconv"

	"github.com/ledgerd/ledgerd/ledger/identity"
)

// TrustedRoots lists the versions of an org's trusted roots, oldest first, without their documents.
func (c *Client) TrustedRoots(ctx context.Context, org string) iter.Seq2[identity.TrustedRoot, error] {
	return list[identity.TrustedRoot](ctx, c, pathOf("orgs", org, "trusted-roots"), parameters())
}

// TrustedRoot returns a version of a trusted root with its document; 0 means the one in effect.
func (c *Client) TrustedRoot(ctx context.Context, org, name string, version int) (r identity.TrustedRoot, err error) {
	q := parameters()
	if version != 0 {
		q = parameters("version", strconv.Itoa(version))
	}
	r, _, err = call[identity.TrustedRoot](ctx, c, request{
		method: http.MethodGet, path: pathOf("orgs", org, "trusted-roots", name), query: q,
	})
	return r, err
}

// SetTrustedRoot makes a document, the file trusted_root.json of a Sigstore instance, the next version
// of a trusted root. It is a no-op if the document is in effect.
func (c *Client) SetTrustedRoot(ctx context.Context, org, name string, document []byte) (identity.TrustedRoot, error) {
	r, _, err := call[identity.TrustedRoot](ctx, c, request{
		method: http.MethodPut, path: pathOf("orgs", org, "trusted-roots", name), body: document,
	})
	return r, err
}

// RemoveTrustedRoot removes a trusted root. What was recorded under it still counts.
func (c *Client) RemoveTrustedRoot(ctx context.Context, org, name string) error {
	return c.remove(ctx, pathOf("orgs", org, "trusted-roots", name))
}

// TrustedRootDocuments returns all versions, with their documents, of the trusted roots that
// identities name. It is an error if the ledger lists more than limit versions of trusted roots.
func (c *Client) TrustedRootDocuments(
	ctx context.Context, org string, identities []identity.Identity, limit int,
) (roots []identity.TrustedRoot, err error) {
	names := make(map[string]bool)
	for _, i := range identities {
		if i.Sigstore != nil {
			names[i.Sigstore.TrustedRoot] = true
		}
	}
	if len(names) == 0 {
		return nil, nil
	}

	versions, err := Collect(c.TrustedRoots(ctx, org), limit+1)
	if err != nil {
		return nil, err
	}
	if len(versions) > limit {
		return nil, fmt.Errorf("the ledger lists more than %d versions of trusted roots", limit)
	}
	for _, r := range versions {
		if !names[r.Name] {
			continue
		}
		if r, err = c.TrustedRoot(ctx, org, r.Name, r.Version); err != nil {
			return nil, err
		}
		roots = append(roots, r)
	}
	return roots, nil
}
