package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"github.com/ledgerd/ledgerd/ledger"
)

// An AttestationFilter narrows a list of attestations; its zero value lets all
// pass.
type AttestationFilter struct {
	// Predicate is exact, or a prefix that ends in *.
	Predicate string
	// Identity is a signer's DN, or a plain name.
	Identity string
	// Commit is a commit's sha, or a unique prefix of it.
	Commit string
	Status ledger.Status
	// Since is the first moment of recording that counts.
	Since ledger.Time
	// OldestFirst turns the order round: the oldest comes first.
	OldestFirst bool
}

func (f AttestationFilter) query() url.Values {
	query := parameters(
		"predicate", f.Predicate,
		"identity", f.Identity,
		"commit", f.Commit,
		"status", string(f.Status),
		"since", f.Since.String(),
	)
	if f.OldestFirst {
		query.Set("order", "asc")
	}
	return query
}

// Attestations lists the attestations of a repo, the newest first.
func (c *Client) Attestations(
	ctx context.Context, org, repo string, f AttestationFilter,
) iter.Seq2[ledger.AttestationRecord, error] {
	return list[ledger.AttestationRecord](ctx, c, pathOf("orgs", org, "repos", repo, "attestations"), f.query())
}

// AttestationsPage returns one page of what Attestations lists.
func (c *Client) AttestationsPage(
	ctx context.Context, org, repo string, f AttestationFilter, q Query,
) (ledger.Page[ledger.AttestationRecord], error) {
	return page[ledger.AttestationRecord](ctx, c, pathOf("orgs", org, "repos", repo, "attestations"), f.query(), q)
}

// Attestation returns one attestation.
func (c *Client) Attestation(ctx context.Context, org, repo, id string) (ledger.AttestationRecord, error) {
	return get[ledger.AttestationRecord](ctx, c, pathOf("orgs", org, "repos", repo, "attestations", id))
}

// Envelope returns the bytes that were recorded as an attestation: the DSSE
// envelope or Sigstore bundle exactly as it was posted.
func (c *Client) Envelope(ctx context.Context, org, repo, id string) ([]byte, error) {
	a, err := c.do(ctx, request{
		method: http.MethodGet,
		path:   pathOf("orgs", org, "repos", repo, "attestations", id, "envelope"),
		accept: "*/*",
	})
	if err != nil {
		return nil, err
	}
	return a.body, nil
}

// Record posts a DSSE envelope or a Sigstore bundle. It returns the record and
// whether it is new: the same statement by the same signer is recorded once.
func (c *Client) Record(
	ctx context.Context, org, repo string, envelope []byte,
) (ledger.AttestationRecord, bool, error) {
	record, a, err := call[ledger.AttestationRecord](ctx, c, request{
		method: http.MethodPost,
		path:   pathOf("orgs", org, "repos", repo, "attestations"),
		body:   envelope,
	})
	if err != nil {
		return ledger.AttestationRecord{}, false, err
	}
	return record, a.created(), nil
}
