package identity

import "crypto"

// Exported for tests in package identity_test.
const (
	MaxPEM      = maxPEM
	MaxEmails   = maxEmails
	MaxTryBytes = maxTryBytes
)

// CheckKey returns an error if the type of the key is not supported.
func CheckKey(pub crypto.PublicKey) error {
	_, err := publicKeyOf(pub)
	return err
}

// Names reports whether a keyid or hint identifies a registered key.
func (k *Keyring) Names(hint string) bool { return k.keyForHint(hint) != nil }

// Height returns the number of steps from a DN to the root of its tree.
func (p *People) Height(dn DN) (steps int) {
	for node := p.names[dn]; p.parents[node] != node; node = p.parents[node] {
		steps++
	}
	return steps
}
