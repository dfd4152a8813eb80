package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/passkey"
	"github.com/ledgerd/ledgerd/ledger/review"
)

// An AttestationFilter filters a list of attestations. The zero value matches all.
type AttestationFilter struct {
	// Predicate is a predicate, or a prefix of predicates followed by *. With ://, it is a
	// PredicateType.
	Predicate string
	// PredicateType is a predicate type, or a prefix of predicate types followed by *.
	PredicateType string
	// Identity is a signer's DN, or its plain name (CN).
	Identity string
	// Commit is a commit's id, or a unique prefix of at least 7 digits.
	Commit string
	Status ledger.Status
	// Since matches attestations recorded at that time or later.
	Since ledger.Time
	// OldestFirst reverses the order.
	OldestFirst bool
	// Verification adds to each attestation how its signature was verified.
	Verification bool
}

func (f AttestationFilter) query() url.Values {
	query := parameters(
		"predicate", f.Predicate,
		"predicate_type", f.PredicateType,
		"identity", f.Identity,
		"commit", f.Commit,
		"status", string(f.Status),
		"since", f.Since.String(),
	)
	if f.OldestFirst {
		query.Set("order", "asc")
	}
	if f.Verification {
		query.Set("verification", "true")
	}
	return query
}

// Attestations lists the attestations of a repo, newest first.
func (c *Client) Attestations(
	ctx context.Context, org, repo string, f AttestationFilter,
) iter.Seq2[ledger.AttestationRecord, error] {
	return list[ledger.AttestationRecord](ctx, c, pathOf("orgs", org, "repos", repo, "attestations"), f.query())
}

// AttestationsPage returns one page of the list of Attestations.
func (c *Client) AttestationsPage(
	ctx context.Context, org, repo string, f AttestationFilter, q Query,
) (ledger.Page[ledger.AttestationRecord], error) {
	return page[ledger.AttestationRecord](ctx, c, pathOf("orgs", org, "repos", repo, "attestations"), f.query(), q)
}

// Attestation returns one attestation.
func (c *Client) Attestation(ctx context.Context, org, repo, id string) (ledger.AttestationRecord, error) {
	return get[ledger.AttestationRecord](ctx, c, pathOf("orgs", org, "repos", repo, "attestations", id))
}

// Envelope returns the DSSE envelope or Sigstore bundle of an attestation, exactly
// as it was posted.
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

// Assertion returns what a passkey has signed to confirm an attestation, exactly as it is kept: the
// JSON text of a [passkey.Assertion]. It is not verified.
func (c *Client) Assertion(ctx context.Context, org, repo, id string) ([]byte, error) {
	return c.bytes(ctx, pathOf("orgs", org, "repos", repo, "attestations", id, "assertion"), passkey.MaxAssertion)
}

// Record records a DSSE envelope or a Sigstore bundle. It returns the record and
// reports whether it is new: the same statement by the same signer is recorded only
// once.
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

// RecordAll records the envelopes and bundles in a body: JSON Lines, an array, or a list as npm
// and GitHub return it. The items are in the order of the envelopes, and each has its own status;
// those that are not recorded have a Problem. A body with one envelope is one item, or, if it is
// not recorded, an error. Sending a body again records nothing twice.
func (c *Client) RecordAll(ctx context.Context, org, repo string, body []byte) ([]ledger.BulkItem, error) {
	a, err := c.do(ctx, request{
		method: http.MethodPost,
		path:   pathOf("orgs", org, "repos", repo, "attestations"),
		body:   body,
	})
	if err != nil {
		return nil, err
	}

	var response ledger.BulkResponse
	if err := a.decode(&response); err != nil || response.Data != nil {
		return response.Data, err
	}
	var record ledger.AttestationRecord
	if err := a.decode(&record); err != nil {
		return nil, err
	}
	return []ledger.BulkItem{{Status: a.status, Attestation: &record}}, nil
}

// DraftReview returns a statement about a commit for a member to sign. Only a member who has signed
// in during the last 15 minutes can review in this way.
func (c *Client) DraftReview(ctx context.Context, org, repo, sha string, n review.NewDraft) (review.Draft, error) {
	return post[review.Draft](ctx, c, pathOf("orgs", org, "repos", repo, "commits", sha, "review-drafts"), n)
}

// RecordReview records the statement of a draft that the member has signed.
func (c *Client) RecordReview(
	ctx context.Context, org, repo, sha string, n review.NewReview,
) (ledger.AttestationRecord, error) {
	return post[ledger.AttestationRecord](ctx, c, pathOf("orgs", org, "repos", repo, "commits", sha, "reviews"), n)
}

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

// ArtifactGate answers whether the commits that an artifact was built from have reached a state. If
// repo is empty, they may be of any repo of the org. If environment is not empty, none may have been
// rolled back from it.
func (c *Client) ArtifactGate(
	ctx context.Context, org, repo, digest string, required ledger.State, environment string,
) (ledger.Gate, error) {
	gate, _, err := call[ledger.Gate](ctx, c, request{
		method: http.MethodGet, path: pathOf("orgs", org, "artifacts", digest, "gate"),
		query: parameters("state", required.String(), "repo", repo, "env", environment),
	})
	return gate, err
}

// Artifacts is like Artifact, for up to ledger.MaxDigests digests. The result is in their
// order, and has those that nothing names without links.
func (c *Client) Artifacts(ctx context.Context, org string, q ledger.ArtifactQuery) ([]ledger.Artifact, error) {
	list, err := post[ledger.ArtifactList](ctx, c, pathOf("orgs", org, "artifacts"), q)
	if err != nil {
		return nil, err
	}
	for i, a := range list.Data[:min(len(list.Data), len(q.Digests))] {
		if !isSame("artifacts", q.Digests[i], a.Digest) {
			return nil, &AnotherError{What: "artifacts", Requested: q.Digests[i], Received: a.Digest}
		}
	}
	return list.Data, nil
}
