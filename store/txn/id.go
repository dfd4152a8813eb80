package txn

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/oklog/ulid/v2"

	"github.com/ledgerd/ledgerd/ledger"
)

// IDs generates identifiers: a prefix for the kind, and a ULID. Those of an org in the same
// millisecond are in increasing order. They do not depend on the identifiers of other orgs, or two of
// an org would show how many others have received between them. Only the writer uses it.
type IDs struct {
	at   ledger.Time
	last map[int64]entropy // by org, at that time
}

// An entropy is the random part of a ULID: 80 bits in two numbers.
type entropy struct {
	high uint16
	low  uint64
}

// newIDs returns a generator that has generated nothing.
func newIDs() *IDs { return &IDs{last: make(map[int64]entropy)} }

// Next returns a new identifier of an org with the given prefix and creation time.
func (s *IDs) Next(org int64, prefix string, at ledger.Time) (string, error) {
	if at != s.at {
		s.at = at
		clear(s.last)
	}
	var id ulid.ULID
	if err := id.SetTime(uint64(at)); err != nil {
		return "", fmt.Errorf("generate ID: %w", err)
	}

	rand.Read(id[6:])
	e, ok := s.last[org]
	if ok {
		e = e.plus(uint64(binary.BigEndian.Uint32(id[6:])) + 1)
	} else {
		e = entropy{binary.BigEndian.Uint16(id[6:]) >> 1, binary.BigEndian.Uint64(id[8:])} // half of the range is free
	}
	s.last[org] = e
	binary.BigEndian.PutUint16(id[6:], e.high)
	binary.BigEndian.PutUint64(id[8:], e.low)
	return prefix + id.String(), nil
}

// plus returns the sum, which does not overflow within a millisecond.
func (e entropy) plus(n uint64) entropy {
	low, carry := bits.Add64(e.low, n, 0)
	return entropy{e.high + uint16(carry), low}
}

// The prefixes of identifiers.
const (
	EventPrefix       = "evt_"
	AttestationPrefix = "att_"
	TokenPrefix       = "tok_"
	IdentityPrefix    = "idn_"
	WebhookPrefix     = "whk_"
	DeliveryPrefix    = "dlv_"
	IssuerPrefix      = "iss_"
	RulePrefix        = "rul_"
	MemberPrefix      = "mem_"
	PasskeyPrefix     = "pas_"
	MemberRulePrefix  = "mrl_"
)

// IDTime returns the creation time of an identifier. It returns false if id is not
// an identifier with that prefix.
func IDTime(prefix, id string) (ledger.Time, bool) {
	if len(id) != len(prefix)+ulid.EncodedSize || id[:len(prefix)] != prefix {
		return 0, false
	}
	parsed, err := ulid.ParseStrict(id[len(prefix):])
	if err != nil {
		return 0, false
	}
	return ledger.Time(parsed.Time()), true
}

// TimeOfID returns the part of an identifier that contains its creation time. As text,
// these parts of identifiers with the same prefix are in the order of the times.
func TimeOfID(id string) string { return id[:len(id)-entropySize] }

// entropySize is the length of the random part of an identifier.
const entropySize = 16
