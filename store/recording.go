package store

import (
	"errors"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// ErrKeyringChanged means that an identity was added or revoked between the verification
// of an attestation and its recording. The caller must verify the attestation again.
var ErrKeyringChanged = errors.New("the org's identities changed after the attestation was verified")

// A recording is an attestation to be recorded, and then the result.
type recording struct {
	org, repo      string
	attestation    *attestation.Attestation
	envelope       packedEnvelope
	keyringVersion int64
	identity       string // the signer's DN

	// The result is a record, or the reason why the attestation was refused.
	rec     ledger.AttestationRecord
	created bool
	err     error
}

// A duplicate is an existing record of a statement.
type duplicate struct {
	rec        ledger.AttestationRecord
	replacedBy string // the same signer's latest attestation; empty if it is rec
}

// setDuplicate sets the result for a statement that is already recorded.
func (r *recording) setDuplicate(dup *duplicate) {
	if dup.replacedBy == "" {
		r.rec = dup.rec
		return
	}
	r.err = ledger.Errorf(ledger.CodeStaleStatement,
		"this statement is already recorded as %s, which %s has replaced: "+
			"sign a new statement, for example with another startedOn and finishedOn",
		dup.rec.ID, dup.replacedBy)
}
