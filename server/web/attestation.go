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

// An attestationPage shows one attestation and what its statement says.
type attestationPage struct {
	ledger.AttestationRecord
	// Statement is the signed payload, laid out to be read.
	Statement string
	// Cut tells that there is more of it.
	Cut bool
	// Size is the envelope's, in bytes.
	Size int
}

func showAttestation(v *visit) (*answer, error) {
	record, err := v.api.Attestation(v.ctx(), v.org, v.repo, v.value("id"))
	if err != nil {
		return nil, err
	}
	body, err := v.api.Envelope(v.ctx(), v.org, v.repo, record.ID)
	if err != nil {
		return nil, err
	}
	envelope, err := attestation.ParseEnvelope(body)
	if err != nil {
		return nil, fmt.Errorf("parse the envelope of %s: %w", record.ID, err)
	}
	p := attestationPage{AttestationRecord: record, Size: len(body)}
	p.Statement, p.Cut = readable(envelope.Payload)
	return v.page("attestation", format.Clip(record.Predicate, 80)+" by "+format.Clip(record.Signer, 80), p), nil
}

func downloadEnvelope(v *visit) (*answer, error) {
	body, err := v.api.Envelope(v.ctx(), v.org, v.repo, v.value("id"))
	if err != nil {
		return nil, err
	}
	return file(v.value("id")+".json", "application/json", body), nil
}

const (
	maxLaidOut  = 256 << 10 // bytes of a payload that is laid out anew
	maxIndented = 32        // levels of one
	maxReadable = 100_000   // characters that are shown
)

// readable lays JSON out in lines, unless that would make very much of it, and
// cuts it where it is too long to be shown. All of it is seen, in the order in
// which it stands.
func readable(payload []byte) (text string, cut bool) {
	text = string(payload)
	if len(payload) <= maxLaidOut && depth(payload) <= maxIndented {
		text = format.Indented(payload)
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	shown := format.Clip(text, maxReadable)
	return format.EscapeUnseen(shown), shown != text
}

// depth returns how deep arrays and objects lie in each other, at most.
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
