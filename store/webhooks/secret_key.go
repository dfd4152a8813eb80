package webhooks

import (
	"io"

	"github.com/ledgerd/ledgerd/store/internal/sealed"
)

// SecretKeys encrypt the secrets of webhooks in the database.
type SecretKeys = sealed.Keys

// ReadSecretKeys reads a file with keys, one per line. The first encrypts, and all decrypt. The
// errors do not contain the keys.
func ReadSecretKeys(r io.Reader) (SecretKeys, error) { return sealed.ReadKeys(r) }
