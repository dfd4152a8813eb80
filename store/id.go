package store

import (
	"crypto/rand"
	"fmt"

	"github.com/oklog/ulid/v2"

	"github.com/ledgerd/ledgerd/ledger"
)

// ids generates identifiers: a prefix for the kind, and a ULID. Identifiers of the
// same millisecond are in increasing order. Only the writer uses it.
type ids struct{ entropy *ulid.MonotonicEntropy }

func newIDs() *ids { return &ids{ulid.Monotonic(rand.Reader, 0)} }

// next returns a new identifier with the given prefix and creation time.
func (s *ids) next(prefix string, at ledger.Time) (string, error) {
	id, err := ulid.New(uint64(at), s.entropy)
	if err != nil {
		return "", fmt.Errorf("generate ID: %w", err)
	}
	return prefix + id.String(), nil
}

// The prefixes of identifiers.
const (
	eventPrefix       = "evt_"
	attestationPrefix = "att_"
	tokenPrefix       = "tok_"
	identityPrefix    = "idn_"
	webhookPrefix     = "whk_"
	deliveryPrefix    = "dlv_"
	issuerPrefix      = "iss_"
	rulePrefix        = "rul_"
	memberPrefix      = "mem_"
	passkeyPrefix     = "pas_"
	memberRulePrefix  = "mrl_"
)

// idTime returns the creation time of an identifier. It returns false if id is not
// an identifier with that prefix.
func idTime(prefix, id string) (ledger.Time, bool) {
	if len(id) != len(prefix)+ulid.EncodedSize || id[:len(prefix)] != prefix {
		return 0, false
	}
	parsed, err := ulid.ParseStrict(id[len(prefix):])
	if err != nil {
		return 0, false
	}
	return ledger.Time(parsed.Time()), true
}

// timeOfID returns the part of an identifier that contains its creation time. As text,
// these parts of identifiers with the same prefix are in the order of the times.
func timeOfID(id string) string { return id[:len(id)-entropySize] }

// entropySize is the length of the random part of an identifier.
const entropySize = 16
