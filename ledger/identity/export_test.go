package identity

import "crypto"

// What the tests outside the package need to know of its inside.
const (
	MaxPEM   = maxPEM
	MaxTried = maxTried
)

// CheckKey says why a key's kind is refused.
func CheckKey(pub crypto.PublicKey) error {
	_, err := publicKeyOf(pub)
	return err
}

// Names reports whether a keyid or hint names a registered key.
func (k *Keyring) Names(hint string) bool { return k.hinted(hint) != nil }
