package commits

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/server/web/format"
	"github.com/ledgerd/ledgerd/server/web/page"
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
	// Size is the size of the envelope in bytes; 0 if it was pruned.
	Size int
	// TrustedBy is the key or the root that made it trusted; nil if it is unknown.
	TrustedBy *identity.Identity
	// Cosign is the command with which cosign verifies the signature; empty if it cannot.
	Cosign string
	// LogKey is the key of the org's log; empty if the log has no checkpoint.
	LogKey string
}

func showAttestation(v *page.Visit) (*page.Response, error) {
	record, err := v.API.Attestation(v.Ctx(), v.Org, v.Repo, v.Value("id"))
	if err != nil {
		return nil, err
	}
	p := attestationPage{AttestationRecord: record}
	if p.TrustedBy, err = trustedBy(v, record.Verification); err != nil {
		return nil, err
	}
	body, err := v.API.Envelope(v.Ctx(), v.Org, v.Repo, record.ID)
	if client.CodeOf(err) == ledger.CodePruned {
		return v.Page("attestation", titleOf(record), p), nil
	}
	if err != nil {
		return nil, err
	}

	payload, err := attestation.Payload(body)
	if err != nil {
		return nil, fmt.Errorf("parse the envelope of %s: %w", record.ID, err)
	}
	p.Size, p.IsCommit = len(body), attestation.IsCommitObject(body)
	log, err := v.API.Log(v.Ctx(), v.Org)
	if err != nil {
		return nil, err
	}
	p.LogKey, p.Cosign = log.Key, cosignCommand(record, body)
	p.Statement, p.Cut = readable(payload)
	return v.Page("attestation", titleOf(record), p), nil
}

// titleOf returns the title of the page.
func titleOf(a ledger.AttestationRecord) string {
	return format.Clip(a.Predicate, 80) + " by " + format.Clip(a.Signer, 80)
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

func showArtifacts(v *page.Visit) (*page.Response, error) {
	p := artifactsPage{Asked: v.Query("digest")}
	if p.Asked != "" {
		digest, err := ledger.ParseArtifact(p.Asked)
		if err == nil {
			return page.SeeOther(v.PathOf(page.ArtifactsPattern, digest)), nil
		}
		p.Problem = err.Error()
	}
	return v.Page("artifacts", "Artifacts", p), nil
}

func showArtifact(v *page.Visit) (*page.Response, error) {
	list, err := v.API.Artifacts(v.Ctx(), v.Org, ledger.ArtifactQuery{Digests: []string{v.Value("digest")}})
	if err != nil {
		return nil, err
	}
	p := artifactsPage{Asked: list[0].Digest, Artifact: &list[0]}
	return v.LivePage("artifacts", "Artifact "+format.Clip(p.Asked, 24), p, ledger.EventAttestation, ledger.EventState,
		ledger.EventStanding, ledger.EventPolicy), nil
}
