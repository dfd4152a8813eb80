package receipt

import (
	"crypto/ecdsa"
	"encoding/hex"
	"fmt"

	"github.com/go-json-experiment/json"
	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/proof"
)

// CheckProof checks the proof (C2SP tlog-proof) that goes with a receipt: the newest event
// that the decision rests on is in the log. logKeys are the trusted keys of the log. It returns
// the checkpoint.
func (r Receipt) CheckProof(text []byte, logKeys ...note.Verifier) (proof.Checkpoint, error) {
	opening, included, err := openProof(text, r.Log.Origin, logKeys)
	if err != nil {
		return included.checkpoint, fmt.Errorf("check the proof of the receipt: %w", err)
	}
	leaf := opening.Leaf.LeafHash()
	switch {
	case opening.Leaf.Event != r.Log.Event:
		err = fault("predicate.ledgerd.log.event", "the receipt names %s, and the proof is of %s", r.Log.Event,
			opening.Leaf.Event)
	case included.index != r.Log.Index:
		err = fault("predicate.ledgerd.log.index", "the receipt names %d, and the proof is of %d", r.Log.Index,
			included.index)
	case hex.EncodeToString(leaf[:]) != r.Log.LeafHash:
		err = fault("predicate.ledgerd.log.leafHash", "the leaf of %s in the log is another one", r.Log.Event)
	case opening.Leaf.At > r.CreatedAt:
		err = fault("predicate.timeCreated", "the receipt is older than the event that it rests on")
	}
	return included.checkpoint, err
}

type inclusion struct {
	index      int64
	checkpoint proof.Checkpoint
}

// openProof verifies the proof of an event, and returns what its leaf says.
func openProof(text []byte, origin string, logKeys []note.Verifier) (o proof.Opening, i inclusion, err error) {
	p, err := proof.ParseInclusion(text)
	if err != nil {
		return o, i, err
	}
	if o, err = proof.ParseOpening(p.Extra); err != nil {
		return o, i, err
	}
	i.index = p.Index
	if i.checkpoint, err = proof.OpenCheckpoint(p.Checkpoint, logKeys...); err != nil {
		return o, i, err
	}
	if i.checkpoint.Origin != origin {
		return o, i, fmt.Errorf("the checkpoint is of the log %s, not %s", i.checkpoint.Origin, origin)
	}
	return o, i, p.Verify(o.Leaf.LeafHash(), i.checkpoint)
}

// An Announcement shows that the log has a receipt key: the key, the event that announces
// it, and the proof that the event is in the log.
type Announcement = ledger.ReceiptKey

// keyEvent is the part of a ledger.KeyEvent that an announcement is checked by.
type keyEvent struct {
	Org       string      `json:"org"`
	Action    string      `json:"action"`
	Purpose   string      `json:"purpose"`
	Key       string      `json:"key"`
	NotBefore ledger.Time `json:"not_before"`
	NotAfter  ledger.Time `json:"not_after"`
}

// ActionAdded and Purpose are those of events that announce receipt keys.
const (
	ActionAdded = "added"
	Purpose     = "receipt"
	eventKey    = ledger.EventType("key")
)

// A Key is a receipt key that the log announces.
type Key struct {
	*ecdsa.PublicKey
	Org string
	// NotBefore and NotAfter bound the times of receipts that it signs.
	NotBefore, NotAfter ledger.Time
}

// OpenKey verifies an announcement, and returns its key. Origin is that of the log. The
// announcement of an org is good for its receipts only: call Covers.
func OpenKey(a Announcement, origin string, logKeys ...note.Verifier) (Key, error) {
	fail := func(err error) (Key, error) { return Key{}, fmt.Errorf("check the announcement of the key: %w", err) }
	opening, _, err := openProof([]byte(a.Proof), origin, logKeys)
	if err != nil {
		return fail(err)
	}
	if opening.Leaf.Type != eventKey {
		return fail(fault("event", "the type %s in the log is not %s", opening.Leaf.Type, eventKey))
	}
	if err := opening.Verify([]byte(a.Event)); err != nil {
		return fail(err)
	}

	public, err := ParsePublicKey([]byte(a.PublicKey))
	if err != nil {
		return fail(err)
	}
	id, err := identity.Fingerprint(public)
	if err != nil {
		return fail(err)
	}
	var e keyEvent
	if err := json.Unmarshal([]byte(a.Event), &e); err != nil {
		return fail(err)
	}
	switch {
	case e.Purpose != Purpose:
		return fail(fault("event.purpose", "%q is not %s", e.Purpose, Purpose))
	case e.Action != ActionAdded:
		return fail(fault("event.action", "%q is not %s", e.Action, ActionAdded))
	case e.Key != id:
		return fail(fault("event.key", "the log announces %s, and the key is %s", e.Key, id))
	}
	return Key{public, e.Org, e.NotBefore, e.NotAfter}, nil
}

// Covers returns an error unless the key is good for a receipt.
func (k Key) Covers(r Receipt) error {
	switch {
	case k.Org != r.Org:
		return fault("event.org", "the key is for receipts of the org %s, not %s", k.Org, r.Org)
	case r.CreatedAt < k.NotBefore:
		return fault("event.not_before", "the key is valid from %s, and the receipt is of %s", k.NotBefore, r.CreatedAt)
	case k.NotAfter != 0 && r.CreatedAt > k.NotAfter:
		return fault("event.not_after", "the key is valid until %s, and the receipt is of %s", k.NotAfter, r.CreatedAt)
	}
	return nil
}
