package client

import (
	"context"

	"github.com/ledgerd/ledgerd/ledger"
)

// Artifact returns the commits with which statements link an artifact, given its digest,
// such as sha256:… with 64 hex digits. If repo is not empty, only commits of this repo are
// linked. If nothing names the digest, the code of the error is ledger.CodeNotFound.
func (c *Client) Artifact(ctx context.Context, org, repo, digest string) (ledger.Artifact, error) {
	path := pathOf("orgs", org, "artifacts", digest)
	if query := parameters("repo", repo); len(query) > 0 {
		path += "?" + query.Encode()
	}
	return get[ledger.Artifact](ctx, c, path)
}

// Artifacts is like Artifact, for up to ledger.MaxDigests digests. The result is in their
// order, and has those that nothing names without links.
func (c *Client) Artifacts(ctx context.Context, org string, q ledger.ArtifactQuery) ([]ledger.Artifact, error) {
	list, err := post[ledger.ArtifactList](ctx, c, pathOf("orgs", org, "artifacts"), q)
	return list.Data, err
}
