package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/attestation/bulk"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/server/internal/reviews"
	"github.com/ledgerd/ledgerd/store"
)

func (s *Server) listAttestations(c *call) (*reply, error) {
	f, err := c.attestationFilter()
	if err != nil {
		return nil, err
	}
	page, err := s.store.Attestations(c.ctx(), c.org(), c.repo(), f)
	return listed(c, page, err)
}

func (c *call) attestationFilter() (f store.AttestationFilter, err error) {
	if f.Query, err = c.page(); err != nil {
		return f, err
	}

	if f.Predicate, err = parse(c, "predicate", predicatePattern); err != nil {
		return f, err
	}
	if f.PredicateType, err = parse(c, "predicate_type", predicatePattern); err != nil {
		return f, err
	}
	if f.Identity, err = parse(c, "identity", dnOrName); err != nil {
		return f, err
	}
	if f.Since, err = parse(c, "since", ledger.ParseSince); err != nil {
		return f, err
	}
	if f.Status, err = parse(c, "status", status); err != nil {
		return f, err
	}
	if f.Commit, err = parse(c, "commit", commitPrefix); err != nil {
		return f, err
	}
	if f.Ascending, err = parse(c, "order", ascending); err != nil {
		return f, err
	}
	f.Verification, err = parse(c, "verification", onlyTrue)
	return f, err
}

func predicatePattern(s string) (string, error) {
	if strings.Contains(strings.TrimSuffix(s, "*"), "*") {
		return "", fmt.Errorf("%q is not a predicate or prefix (use * only at the end, e.g. test:*)", s)
	}
	return s, nil
}

func dnOrName(s string) (string, error) {
	if !strings.Contains(s, "=") {
		return s, nil
	}
	dn, err := identity.ParseDN(s)
	if err != nil {
		return "", fmt.Errorf("%q is not a DN (use e.g. cn=ci,ou=build,o=acme): %w", s, err)
	}
	return dn.String(), nil
}

func status(s string) (ledger.Status, error) {
	if !slices.Contains(ledger.Statuses(), ledger.Status(s)) {
		return "", fmt.Errorf("%q is not a status (use pass, warn, fail, error, skip or recorded)", s)
	}
	return ledger.Status(s), nil
}

func commitPrefix(s string) (string, error) {
	if !ledger.IsCommitPrefix(s) {
		return "", fmt.Errorf("%q is not a commit ID (use 7 to 64 lower-case hex digits)", s)
	}
	return s, nil
}

func ascending(s string) (bool, error) {
	switch s {
	case "asc":
		return true, nil
	case "desc":
		return false, nil
	}
	return false, fmt.Errorf("%q is not an order (use asc or desc)", s)
}

func (s *Server) recordAttestation(c *call) (*reply, error) {
	body, err := c.body(s.config.Limits.MaxBody, typeJSON, typeDSSE, typeBundle, typeBundleOld, typeLines, typeLinesX)
	if err != nil {
		return nil, err
	}

	record, isNew, err := s.record(c, reviews.Signed{Envelope: body})
	if attestation.IsMalformed(err) && c.hasType(typeJSON, typeLines, typeLinesX) { // it is not one envelope
		items, splitErr := bulk.Split(body)
		if splitErr != nil {
			return nil, splitErr
		}
		if items != nil {
			return s.recordItems(c, items)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case isNew:
		return created(record, attestationsURL(record.Org, record.Repo)+"/"+record.ID), nil
	}
	return &reply{status: http.StatusOK, record: record}, nil
}

// recordItems records the items of a bulk request one after the other, each like a separate
// request. Items that would begin after s.bulkTime, or after the client has gone, are not recorded.
func (s *Server) recordItems(c *call, items []bulk.Item) (*reply, error) {
	if err := s.countItems(c, len(items)); err != nil {
		return nil, err
	}
	if _, err := s.store.Repo(c.ctx(), c.org(), c.repo()); err != nil {
		return nil, err
	}

	response := ledger.BulkResponse{Data: make([]ledger.BulkItem, len(items))}
	ctx, cancel := context.WithTimeout(c.ctx(), s.bulkTime)
	defer cancel()
	for i, item := range items {
		record, isNew, err := ledger.AttestationRecord{}, false, item.Err
		if err == nil && ctx.Err() != nil {
			err = ledger.Errorf(ledger.CodeServerBusy, "the request took longer than %v: this envelope was not recorded "+
				"(send the request again)", s.bulkTime)
		}
		if err == nil {
			record, isNew, err = s.record(c, reviews.Signed{Envelope: item.Envelope})
		}
		response.Data[i] = s.item(c, i, record, isNew, err)
	}
	return &reply{status: http.StatusOK, record: response}, nil
}

// item returns the item of a response for what record returned.
func (s *Server) item(c *call, index int, record ledger.AttestationRecord, isNew bool, err error) ledger.BulkItem {
	if err != nil {
		p := s.problem(c.w, c.r, err)
		return ledger.BulkItem{Index: index, Status: p.Status, Problem: &p}
	}
	status := http.StatusOK
	if isNew {
		status = http.StatusCreated
	}
	return ledger.BulkItem{Index: index, Status: status, Attestation: &record}
}

// record verifies and records an envelope. It reports whether the attestation is new. The assertion of
// a passkey must be verified.
func (s *Server) record(c *call, signed reviews.Signed) (ledger.AttestationRecord, bool, error) {
	verify := func(at attestation.Place, keys *identity.Keyring) (*attestation.Attestation, error) {
		a, err := at.Verify(signed.Envelope, keys, s.time())
		if err != nil {
			return nil, err
		}
		a.Assertion, a.Passkey = signed.Assertion, signed.Passkey
		return a, c.caller.confirms(a)
	}
	record, isNew, err := s.store.Attest(c.ctx(), c.org(), c.repo(), verify)
	if err == nil && isNew {
		s.config.Observer.Recorded(record.Result.Status)
	}
	return record, isNew, err
}

// confirms refuses a baseline unless an admin sends it. Who signs a baseline asks for it, and who sends it confirms it.
func (c caller) confirms(a *attestation.Attestation) error {
	switch {
	case a.Baseline == nil, c.token.Scope >= ledger.Admin:
		return nil
	case c.token.IsSignIn:
		return ledger.Errorf(ledger.CodeForbidden, "role %s required: an admin confirms a baseline by sending it, "+
			"and you are %s", member.Admin, member.Role(c.token.Scope))
	}
	return ledger.Errorf(ledger.CodeForbidden,
		"scope %s required: an admin confirms a baseline by sending it, and the API token has scope %s",
		ledger.Admin, c.token.Scope)
}

func (s *Server) getAttestation(c *call) (*reply, error) {
	return single(s.store.Attestation(c.ctx(), c.org(), c.repo(), c.id()))
}

// getEnvelope returns the bytes that were posted.
func (s *Server) getEnvelope(c *call) (*reply, error) {
	envelope, err := s.store.Envelope(c.ctx(), c.org(), c.repo(), c.id())
	if err != nil {
		return nil, err
	}
	mediaType := cmp.Or(attestation.MediaType(envelope), typeBinary)
	return &reply{status: http.StatusOK, body: envelope, mediaType: mediaType, tagged: true}, nil
}

// getAssertion returns what a passkey has signed to confirm an attestation.
func (s *Server) getAssertion(c *call) (*reply, error) {
	assertion, err := s.store.Assertion(c.ctx(), c.org(), c.repo(), c.id())
	if err != nil {
		return nil, err
	}
	return &reply{status: http.StatusOK, body: assertion, mediaType: typeJSON, tagged: true}, nil
}

func (s *Server) listExceptions(c *call) (*reply, error) {
	f, err := c.exceptionFilter()
	if err != nil {
		return nil, err
	}
	page, err := s.store.Exceptions(c.ctx(), c.org(), c.repo(), f)
	return listed(c, page, err)
}

func (c *call) exceptionFilter() (f store.ExceptionFilter, err error) {
	if f.Query, err = c.page(); err != nil {
		return f, err
	}
	if f.Commit, err = parse(c, "commit", commitPrefix); err != nil {
		return f, err
	}
	f.Active, err = parse(c, "active", onlyTrue)
	return f, err
}

// getArtifact returns the commits with which statements link an artifact.
func (s *Server) getArtifact(c *call) (*reply, error) {
	artifact, err := s.artifact(c)
	if err != nil {
		return nil, err
	}
	if !artifact.IsNamed() {
		return nil, ledger.Errorf(ledger.CodeNotFound, "%s: %s", artifact.Digest, artifact.Reason)
	}
	return single(artifact, nil)
}

// getArtifactGate answers whether the commits of an artifact have reached a state.
func (s *Server) getArtifactGate(c *call) (*reply, error) {
	state, err := requiredState(c)
	if err != nil {
		return nil, err
	}
	artifact, err := s.artifact(c)
	if err != nil {
		return nil, err
	}
	return single(artifact.Gate(state), nil)
}

// artifact returns the artifact that a request names.
func (s *Server) artifact(c *call) (ledger.Artifact, error) {
	digest, err := ledger.ParseDigest(c.path.ByName("digest"))
	if err != nil {
		return ledger.Artifact{}, ledger.FieldErrorf(ledger.CodeInvalidField, "digest", "%v", err)
	}
	q := ledger.ArtifactQuery{Digests: []string{digest}, Repo: c.query.Get("repo")}
	if q.Environment, err = parse(c, "env", ledger.ParseEnvironment); err != nil {
		return ledger.Artifact{}, err
	}
	list, err := s.store.Artifacts(c.ctx(), c.org(), q)
	if err != nil {
		return ledger.Artifact{}, err
	}
	return list[0], nil
}

// getArtifacts returns several artifacts. It writes nothing; it is a POST only because the
// digests are too long for a query.
func (s *Server) getArtifacts(c *call) (*reply, error) {
	var q ledger.ArtifactQuery
	if err := c.decodeValid(&q, smallBody); err != nil {
		return nil, err
	}
	if err := c.beginRead(); err != nil {
		return nil, err
	}
	list, err := s.store.Artifacts(c.ctx(), c.org(), q)
	if err != nil {
		return nil, err
	}
	return &reply{status: http.StatusOK, record: ledger.ArtifactList{Data: list}}, nil
}
