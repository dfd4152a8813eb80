package store

import (
	"crypto/rand"
	"fmt"

	"github.com/oklog/ulid/v2"

	"github.com/ledgerd/ledgerd/ledger"
)

// ids makes identifiers: a prefix that tells the kind, and a ULID. Those of
// one millisecond grow. It is used by the writer alone.
type ids struct{ entropy *ulid.MonotonicEntropy }

func newIDs() *ids { return &ids{ulid.Monotonic(rand.Reader, 0)} }

// next returns a new identifier of the given prefix, made at the given time.
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
)

// idTime returns the time at which an identifier was made.
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
