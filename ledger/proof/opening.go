package proof

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
)

// An Opening shows what a leaf commits to: with the salt, anyone who has the body can compute
// the hash in the record. It is the extra data of an Inclusion.
type Opening struct {
	// Salt is nil if the body was pruned.
	Salt *Salt
	Leaf Leaf
}

// opening is an Opening as JSON.
type opening struct {
	Record string `json:"record"`
	Salt   string `json:"salt,omitzero"`
}

// Format returns the opening as canonical JSON (RFC 8785).
func (o Opening) Format() ([]byte, error) {
	j := opening{Record: string(o.Leaf.Record())}
	if o.Salt != nil {
		j.Salt = hex.EncodeToString(o.Salt[:])
	}
	return json.Marshal(j)
}

// ParseOpening parses an opening. It accepts only what Format writes.
func ParseOpening(text []byte) (o Opening, err error) {
	var j opening
	if err := json.Unmarshal(text, &j, json.RejectUnknownMembers(true)); err != nil {
		return o, fmt.Errorf("parse the extra data of the proof: %w", err)
	}
	if o.Leaf, err = ParseRecord([]byte(j.Record)); err != nil {
		return o, err
	}
	if j.Salt != "" {
		salt, err := hex.DecodeString(j.Salt)
		if err != nil || len(salt) != SaltSize {
			return o, fmt.Errorf("parse the extra data of the proof: the salt is not %d hex bytes", SaltSize)
		}
		o.Salt = (*Salt)(salt)
	}
	if again, err := o.Format(); err != nil || !bytes.Equal(again, text) {
		return o, errors.New("parse the extra data of the proof: it is not canonical JSON (RFC 8785)")
	}
	return o, nil
}

// Verify checks that the leaf commits to the body of an event, and that ID and type in the
// body are those of the leaf.
func (o Opening) Verify(body []byte) error {
	if err := o.VerifyHash(body); err != nil {
		return err
	}
	var event struct {
		ID   string           `json:"id"`
		Type ledger.EventType `json:"type"`
	}
	if err := json.Unmarshal(body, &event); err != nil {
		return fmt.Errorf("parse the body of %s: %w", o.Leaf.Event, err)
	}
	return o.Leaf.CheckEvent(event.ID, event.Type)
}

// CheckEvent checks that the leaf is that of an event with an ID and a type.
func (l Leaf) CheckEvent(id string, kind ledger.EventType) error {
	if id != l.Event || kind != l.Type {
		return fmt.Errorf("the leaf of event %s, type %s, has the body of %s, type %s", l.Event, l.Type, id, kind)
	}
	return nil
}

// VerifyHash checks that the leaf commits to the body of an event.
func (o Opening) VerifyHash(body []byte) error {
	switch {
	case o.Salt == nil:
		return errors.New("the body was pruned, so nothing shows what the leaf commits to")
	case HashBody(*o.Salt, body) != o.Leaf.Hash:
		return fmt.Errorf("the body of %s is not the one in the log", o.Leaf.Event)
	}
	return nil
}
