package store

import (
	"errors"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// ErrKeyringChanged means that an identity was added or revoked between the
// verification of an attestation and its recording: verify it again.
var ErrKeyringChanged = errors.New("the org's identities changed after the attestation was verified")

// A recording is one attestation on its way to the ledger.
type recording struct {
	org, repo      string
	attestation    *attestation.Attestation
	envelope       packedEnvelope
	keyringVersion int64
	identity       string // the signer's DN

	// The result: a record, or the reason why it was refused.
	rec     ledger.AttestationRecord
	created bool
	err     error
}

// A knownStatement is a statement that is recorded already.
type knownStatement struct {
	rec        ledger.AttestationRecord
	replacedBy string // the same signer's latest attestation; empty if it is this one
}

// answer answers a statement that is recorded already.
func (r *recording) answer(known *knownStatement) {
	if known.replacedBy == "" {
		r.rec = known.rec
		return
	}
	r.err = ledger.Errorf(ledger.CodeStaleStatement,
		"this statement is already recorded as %s, which %s has replaced: "+
			"sign a new statement, for example with another startedOn and finishedOn",
		known.rec.ID, known.replacedBy)
}
