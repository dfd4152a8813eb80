package proof

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/go-json-experiment/json"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/ledgerd/ledgerd/ledger"
)

// leafTag separates the hash of a leaf from all other uses of SHA-256.
const leafTag = "ledgerd/leaf/v1\x00"

// SaltSize is the length of a salt in bytes.
const SaltSize = 16

// A Salt makes it impossible to guess a body from the hash in its leaf.
type Salt [SaltSize]byte

// A Leaf is what the log says about an event. The log of an org may be public: the leaf
// shows number, type and time of the event, and nothing of its body.
type Leaf struct {
	At    ledger.Time // the time in the event's ID
	Event string
	// Hash is the hash of the event's body with its salt.
	Hash [sha256.Size]byte
	Type ledger.EventType
}

// HashBody returns the hash of an event's body in its leaf.
func HashBody(salt Salt, body []byte) (hash [sha256.Size]byte) {
	h := sha256.New()
	h.Write([]byte(leafTag))
	h.Write(salt[:])
	h.Write(body)
	h.Sum(hash[:0])
	return hash
}

// record is a Leaf as JSON. Its members are in the order of RFC 8785.
type record struct {
	At    ledger.Time      `json:"at"`
	Event string           `json:"event"`
	Hash  string           `json:"hash"`
	Type  ledger.EventType `json:"type"`
}

// Record returns the entry of the leaf in the log: canonical JSON (RFC 8785).
func (l Leaf) Record() []byte {
	b := make([]byte, 0, maxRecord)
	b = append(b, `{"at":"`...)
	b, _ = l.At.AppendText(b) // never fails
	b = append(b, `","event":"`...)
	b = append(b, l.Event...)
	b = append(b, `","hash":"`...)
	b = hex.AppendEncode(b, l.Hash[:])
	b = append(b, `","type":"`...)
	b = append(b, l.Type...)
	return append(b, `"}`...)
}

// maxRecord is the maximum length of a record in bytes.
const maxRecord = 256

// ParseRecord parses the entry of a leaf. It accepts only what Record writes.
func ParseRecord(entry []byte) (Leaf, error) {
	if len(entry) > maxRecord {
		return Leaf{}, fmt.Errorf("a leaf record has %d bytes, want at most %d", len(entry), maxRecord)
	}
	var r record
	if err := json.Unmarshal(entry, &r, json.RejectUnknownMembers(true)); err != nil {
		return Leaf{}, fmt.Errorf("parse leaf record: %w", err)
	}
	l := Leaf{At: r.At, Event: r.Event, Type: r.Type}
	if hash, err := hex.DecodeString(r.Hash); err != nil || copy(l.Hash[:], hash) != len(hash) {
		return Leaf{}, fmt.Errorf("parse leaf record: the hash %q is not a hex SHA-256", r.Hash)
	}
	if !bytes.Equal(l.Record(), entry) {
		return Leaf{}, fmt.Errorf("parse leaf record: %q is not canonical JSON (RFC 8785)", entry)
	}
	return l, nil
}

// LeafHash returns the hash of the leaf in the tree.
func (l Leaf) LeafHash() tlog.Hash { return tlog.RecordHash(l.Record()) }
