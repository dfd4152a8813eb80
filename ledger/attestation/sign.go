package attestation

import (
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// NewStatement returns an in-toto statement about a commit, of the ledger's own predicate
// type, that links artifacts with it. The subject's name is informational, such as the repo's URL.
func NewStatement(subjectName, commit string, p ResultPredicate, artifacts ...Artifact) ([]byte, error) {
	return NewTreeStatement(subjectName, commit, "", p, artifacts...)
}

// NewTreeStatement is NewStatement with the ID of the commit's tree, unless it is empty.
func NewTreeStatement(subjectName, commit, tree string, p ResultPredicate, artifacts ...Artifact) ([]byte, error) {
	if err := checkResult(p.Predicate, p.Repo, p.Result); err != nil {
		return nil, err
	}
	if err := checkReserved(p.Predicate); err != nil {
		return nil, err
	}
	if err := checkRollout(p.Rollout, p.Again, p.Result.Status); err != nil {
		return nil, err
	}
	if p.Base != "" {
		if err := checkBase(p.Base, p.Predicate, commit); err != nil {
			return nil, err
		}
	}
	return newStatement(subjectName, commit, tree, ResultPredicateType, p, artifacts...)
}

// NewExceptionStatement returns an in-toto statement with an exception for a commit.
func NewExceptionStatement(commit string, x Exception) ([]byte, error) {
	if err := x.check(); err != nil {
		return nil, err
	}
	return newStatement(x.Repo, commit, "", ExceptionPredicateType, x)
}

// NewRollbackStatement returns an in-toto statement that rolls a commit back.
func NewRollbackStatement(commit string, r Rollback) ([]byte, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if err := r.checkCommit(commit); err != nil {
		return nil, err
	}
	return newStatement(r.Repo, commit, "", RollbackPredicateType, r)
}

// NewBaselineStatement returns an in-toto statement that a commit runs in an environment.
func NewBaselineStatement(commit string, b Baseline) ([]byte, error) {
	if err := b.check(); err != nil {
		return nil, err
	}
	return newStatement(b.Repo, commit, "", BaselinePredicateType, b)
}

// NewMergeStatement returns an in-toto statement with the claim that a commit is a merge.
func NewMergeStatement(commit string, m Merge) ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	if err := m.checkCommit(commit); err != nil {
		return nil, err
	}
	return newStatement(m.Repo, commit, "", MergePredicateType, m)
}

// NewChangesStatement returns an in-toto statement with a change record of a commit. It sorts the paths.
func NewChangesStatement(commit string, c Changes) ([]byte, error) {
	c.Paths = slices.Compact(slices.Sorted(slices.Values(c.Paths)))
	if c.Paths == nil {
		c.Paths = []string{}
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	if err := c.checkCommit(commit); err != nil {
		return nil, err
	}
	return newStatement(c.Repo, commit, "", ledger.ChangesType, c)
}

// newStatement returns an in-toto statement about a commit, of one of the ledger's own
// predicate types. The tree may be empty.
func newStatement(
	subjectName, commit, tree, predicateType string, predicate any, artifacts ...Artifact,
) ([]byte, error) {
	if !ledger.IsCommit(commit) {
		return nil, ledger.FieldErrorf(ledger.CodeInvalidStatement, "subject[0].digest.gitCommit",
			"%q is not a full object ID (use 40 or 64 lower-case hex digits)", text.Clip(commit))
	}

	type digest struct {
		GitCommit string `json:"gitCommit,omitzero"`
		GitTree   string `json:"gitTree,omitzero"`
		SHA256    string `json:"sha256,omitzero"`
	}
	type subject struct {
		Name   string `json:"name,omitzero"`
		Digest digest `json:"digest"`
	}
	subjects := []subject{{Name: subjectName, Digest: digest{GitCommit: commit, GitTree: tree}}}
	for _, a := range artifacts {
		subjects = append(subjects, subject{a.Name, digest{SHA256: a.SHA256}})
	}
	doc := struct {
		Type          string    `json:"_type"`
		Subject       []subject `json:"subject"`
		PredicateType string    `json:"predicateType"`
		Predicate     any       `json:"predicate"`
	}{statementV1, subjects, predicateType, predicate}
	text, err := json.Marshal(doc, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("marshal statement: %w", err)
	}
	return text, nil
}

type signedJSON struct {
	Payload     []byte         `json:"payload"`
	PayloadType string         `json:"payloadType"`
	Signatures  []newSignature `json:"signatures"`
}

type newSignature struct {
	KeyID string `json:"keyid,omitzero"`
	Sig   []byte `json:"sig"`
}

// SignDSSE signs a statement and returns its DSSE envelope, with the key's fingerprint as
// the keyid.
func SignDSSE(key crypto.Signer, payload []byte) ([]byte, error) {
	keyid, err := identity.Fingerprint(key.Public())
	if err != nil {
		return nil, err
	}
	sig, err := identity.Sign(key, PAE(StatementType, payload))
	if err != nil {
		return nil, err
	}
	return json.Marshal(signedJSON{payload, StatementType, []newSignature{{keyid, sig}}})
}

// SignBundle signs a statement and returns its Sigstore bundle. The chain starts with the
// certificate of the key, followed by any intermediates.
func SignBundle(key crypto.Signer, chain []*x509.Certificate, payload []byte) ([]byte, error) {
	if len(chain) == 0 {
		return nil, errors.New("a bundle needs a certificate")
	}
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(chain[0].PublicKey) {
		return nil, fmt.Errorf("the certificate of %s does not match the private key", identity.SubjectOf(chain[0]))
	}
	sig, err := identity.Sign(key, PAE(StatementType, payload))
	if err != nil {
		return nil, err
	}
	return NewBundle(chain, payload, sig)
}

// NewBundle returns the Sigstore bundle of a statement that was signed. The chain starts with the
// certificate of the key, followed by any intermediates.
func NewBundle(chain []*x509.Certificate, payload, sig []byte) ([]byte, error) {
	type rawBytes struct {
		RawBytes []byte `json:"rawBytes"`
	}
	type certificates struct {
		Certificates []rawBytes `json:"certificates"`
	}
	type material struct {
		Certificate *rawBytes     `json:"certificate,omitzero"`
		Chain       *certificates `json:"x509CertificateChain,omitzero"`
	}

	var m material
	if len(chain) == 1 {
		m.Certificate = &rawBytes{RawBytes: chain[0].Raw}
	} else {
		m.Chain = &certificates{}
		for _, cert := range chain {
			m.Chain.Certificates = append(m.Chain.Certificates, rawBytes{RawBytes: cert.Raw})
		}
	}
	return json.Marshal(struct {
		MediaType string     `json:"mediaType"`
		Material  material   `json:"verificationMaterial"`
		DSSE      signedJSON `json:"dsseEnvelope"`
	}{BundleType, m, signedJSON{payload, StatementType, []newSignature{{Sig: sig}}}})
}
