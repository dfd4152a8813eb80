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

// A Verified is what a valid receipt says, and the checkpoint that covers it.
type Verified struct {
	Receipt
	Checkpoint proof.Checkpoint
}

// Verify verifies a receipt with its proofs: the log announces the key, the key has signed
// the receipt, the log has the newest event that the decision rests on, and the receipt is
// for what is wanted and valid now.
func Verify(r ledger.Receipt, trust Trust, want Want, now ledger.Time) (v Verified, err error) {
	public, err := ParsePublicKey([]byte(r.Key.PublicKey))
	if err != nil {
		return v, err
	}
	if trust.Key != nil && !trust.Key.Equal(public) {
		return v, fault("key.public_key", "the receipt comes with a key that is not the pinned one")
	}
	if v.Receipt, err = Open(r.Envelope, public); err != nil {
		return v, err
	}

	key, err := OpenKey(r.Key, v.Log.Origin, trust.Logs...)
	if err != nil {
		return v, err
	}
	if err := key.Covers(v.Receipt); err != nil {
		return v, err
	}
	if v.Checkpoint, err = v.CheckProof([]byte(r.Proof), trust.Logs...); err != nil {
		return v, err
	}
	return v, v.Check(want, now)
}
