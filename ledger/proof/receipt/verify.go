package receipt

import (
	"crypto/ecdsa"

	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
)

// A Trust is what a receipt is verified with.
type Trust struct {
	// Logs are keys of the org's log. A key is only good for the log that it is named after.
	Logs []note.Verifier
	// Key is the only key of receipts that is trusted; nil for all that the log announces.
	Key *ecdsa.PublicKey
}

// A Verified is what a valid receipt says, the key that signed it, and the checkpoint that
// covers it.
type Verified struct {
	Receipt
	Key        Key
	Checkpoint proof.Checkpoint
}

// A Step is a part of the verification of a receipt. Each rests on those before it.
type Step int

// The steps of the verification of a receipt.
const (
	SignatureStep Step = iota // the key that comes with the receipt has signed it
	KeyStep                   // the log announces the key
	LogStep                   // the log has the newest event that the decision rests on
	ValidityStep              // the receipt is valid now
	SubjectStep               // the receipt is for what is wanted
	Steps                     // their number
)

// Verify verifies a receipt with its proofs: the log announces the key, the key has signed
// the receipt, the log has the newest event that the decision rests on, and the receipt is
// for what is wanted and valid now.
func Verify(r ledger.Receipt, trust Trust, want Want, now ledger.Time) (Verified, error) {
	v, _, err := Examine(r, trust, want, now)
	return v, err
}

// Examine verifies a receipt as Verify does, and returns how many steps it passed. Of v,
// only what these show is to be trusted.
func Examine(r ledger.Receipt, trust Trust, want Want, now ledger.Time) (v Verified, passed Step, err error) {
	public, err := ParsePublicKey([]byte(r.Key.PublicKey))
	if err != nil {
		return v, SignatureStep, err
	}
	if trust.Key != nil && !trust.Key.Equal(public) {
		return v, SignatureStep, fault("key.public_key", "the receipt comes with a key that is not the pinned one")
	}
	if v.Receipt, err = Open(r.Envelope, public); err != nil {
		return v, SignatureStep, err
	}

	if v.Key, err = OpenKey(r.Key, v.Log.Origin, trust.Logs...); err != nil {
		return v, KeyStep, err
	}
	if err := v.Key.Covers(v.Receipt); err != nil {
		return v, KeyStep, err
	}
	if v.Checkpoint, err = v.CheckProof([]byte(r.Proof), trust.Logs...); err != nil {
		return v, LogStep, err
	}
	if err := v.checkTime(now); err != nil {
		return v, ValidityStep, err
	}
	if err := v.checkSubject(want); err != nil {
		return v, SubjectStep, err
	}
	return v, Steps, nil
}
