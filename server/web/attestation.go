package web

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/server/web/format"
)

// An attestationPage shows an attestation and its statement.
type attestationPage struct {
	ledger.AttestationRecord
	// Statement is the signed payload, formatted.
	Statement string
	// Cut reports whether Statement is only the beginning.
	Cut bool
	// IsCommit reports whether the payload is a commit object.
	IsCommit bool
	// Size is the size of the envelope in bytes.
	Size int
}

func showAttestation(v *visit) (*response, error) {
	record, err := v.api.Attestation(v.ctx(), v.org, v.repo, v.value("id"))
	if err != nil {
		return nil, err
	}
	body, err := v.api.Envelope(v.ctx(), v.org, v.repo, record.ID)
	if err != nil {
		return nil, err
	}

	payload, err := attestation.Payload(body)
	if err != nil {
		return nil, fmt.Errorf("parse the envelope of %s: %w", record.ID, err)
	}

	p := attestationPage{AttestationRecord: record, Size: len(body), IsCommit: attestation.IsCommitObject(body)}
	p.Statement, p.Cut = readable(payload)
	return v.page("attestation", format.Clip(record.Predicate, 80)+" by "+format.Clip(record.Signer, 80), p), nil
}

func downloadEnvelope(v *visit) (*response, error) {
	body, err := v.api.Envelope(v.ctx(), v.org, v.repo, v.value("id"))
	if err != nil {
		return nil, err
	}
	if attestation.IsCommitObject(body) {
		return file(v.value("id")+".commit", "application/octet-stream", body), nil
	}
	return file(v.value("id")+".json", "application/json", body), nil
}

const (
	maxIndentBytes = 256 << 10 // a longer payload is not indented
	maxIndentDepth = 32        // a more deeply nested payload is not indented
	maxStatement   = 100_000   // characters shown
)

// readable returns a JSON payload indented, unless indentation could make it
// very long, and cut to maxStatement characters. Invisible characters are
// escaped, and the order of members is kept.
func readable(payload []byte) (text string, cut bool) {
	text = string(payload)
	if len(payload) <= maxIndentBytes && depth(payload) <= maxIndentDepth {
		text = format.Indented(payload)
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	shown := format.Clip(text, maxStatement)
	return format.EscapeInvisible(shown), shown != text
}

// depth returns the maximum nesting depth of arrays and objects.
func depth(text []byte) int {
	deepest := 0
	d := jsontext.NewDecoder(bytes.NewReader(text))
	for {
		if _, err := d.ReadToken(); err != nil {
			return deepest
		}
		deepest = max(deepest, d.StackDepth())
	}
}

// An artifactsPage finds artifacts by their digests, and shows one.
type artifactsPage struct {
	Asked    string // what the visitor typed
	Problem  string // why it is not a digest
	Artifact *ledger.Artifact
}

func showArtifacts(v *visit) (*response, error) {
	p := artifactsPage{Asked: v.query("digest")}
	if p.Asked != "" {
		digest, err := ledger.ParseArtifact(p.Asked)
		if err == nil {
			return seeOther(v.pathOf(artifactsPattern, digest)), nil
		}
		p.Problem = err.Error()
	}
	return v.page("artifacts", "Artifacts", p), nil
}

func showArtifact(v *visit) (*response, error) {
	list, err := v.api.Artifacts(v.ctx(), v.org, ledger.ArtifactQuery{Digests: []string{v.value("digest")}})
	if err != nil {
		return nil, err
	}
	p := artifactsPage{Asked: list[0].Digest, Artifact: &list[0]}
	return v.livePage("artifacts", "Artifact "+format.Clip(p.Asked, 24), p, ledger.EventAttestation, ledger.EventState,
		ledger.EventPolicy), nil
}
