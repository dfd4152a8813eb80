package verify

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/identity/sshkey"
)

// The limits of keys: in a file, and listed by a ledger.
const (
	MaxKeyFile = 8 << 20 // bytes
	MaxKeys    = 10_000
	MaxRoots   = 1_000 // versions of trusted roots
)

// Keys are the keys and roots that are trusted to sign attestations.
type Keys struct {
	identities []identity.Identity
	// roots are versions of trusted roots, which vouch for keyless signers.
	roots     []identity.TrustedRoot
	parseRoot identity.RootParser
	// pinned reports that the caller knows them, and not only the ledger.
	pinned bool
	// ring, if not nil, has those that were trusted when the attestation was recorded.
	ring *identity.Keyring
	// used has the IDs of listed identities with which a signature was verified; nil if pinned.
	used map[string]bool
}

// Listed returns the keys and roots that the ledger lists, revoked ones included, and all versions of
// its trusted roots, which parse parses.
func Listed(identities []identity.Identity, parse identity.RootParser, roots ...identity.TrustedRoot) Keys {
	return Keys{identities: identities, roots: roots, parseRoot: parse, used: make(map[string]bool)}
}

// Recorded returns the keys of a keyring, which were trusted when an attestation was recorded. With them, it may be
// one that only an earlier release has accepted.
func Recorded(ring *identity.Keyring) Keys { return Keys{ring: ring} }

// ParseKeys parses a file of pinned keys: the JSON list that 'ledgerd identity list -o json'
// prints, public keys and certificates in PEM, or public keys of OpenSSH.
func ParseKeys(text []byte) (Keys, error) {
	if len(text) > MaxKeyFile {
		return Keys{}, fmt.Errorf("the file has more than %d bytes", MaxKeyFile)
	}
	k := Keys{pinned: true}
	var err error
	if text := bytes.TrimSpace(text); len(text) > 0 && text[0] == '[' {
		if err := ledger.DecodeOpen(text, &k.identities); err != nil {
			return Keys{}, err
		}
	} else if k.identities, err = parseText(text); err != nil {
		return Keys{}, err
	}

	switch {
	case len(k.identities) == 0:
		return Keys{}, errors.New("the file has no keys: want public keys or certificates in PEM, " +
			"public keys of OpenSSH, or the output of 'ledgerd identity list -o json'")
	case len(k.identities) > MaxKeys:
		return Keys{}, fmt.Errorf("the file has more than %d keys", MaxKeys)
	}
	return k, k.check()
}

// check refuses keys that no keyring can have.
func (k Keys) check() error {
	all := slices.Clone(k.identities)
	for n := range all {
		if all[n].DN == "" {
			all[n].DN = "cn=any"
		}
	}
	_, err := identity.NewKeyring(all, nil)
	return err
}

// parseText parses public keys of OpenSSH, or else PEM.
func parseText(text []byte) (list []identity.Identity, err error) {
	if bytes.Contains(text, []byte("-----BEGIN ")) {
		return parsePEM(text)
	}
	keys, err := sshkey.ParsePublic(string(text))
	if err != nil {
		return nil, err
	}
	for n, key := range keys {
		encoded, err := identity.PublicPEM(key)
		if err != nil {
			return nil, err
		}
		list = append(list, pinned(n+1, encoded))
	}
	if len(list) == 0 {
		return parsePEM(text)
	}
	return list, nil
}

// pinned returns the identity of key n of the file.
func pinned(n int, encoded string) identity.Identity {
	return identity.Identity{ID: fmt.Sprintf("key %d of the file", n), Kind: identity.KeyIdentity, PEM: encoded}
}

// parsePEM parses public keys, which have no name, and certificates.
func parsePEM(text []byte) (list []identity.Identity, err error) {
	for n := 1; len(list) <= MaxKeys; n++ {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		i := pinned(n, string(pem.EncodeToMemory(block)))
		if block.Type == "CERTIFICATE" {
			if i, err = certified(i); err != nil {
				return nil, fmt.Errorf("key %d of the file: %w", n, err)
			}
		}
		list = append(list, i)
	}
	if len(bytes.TrimSpace(text)) > 0 {
		return nil, fmt.Errorf("the text after key %d of the file is not PEM", len(list))
	}
	return list, nil
}

// certified returns the identity of a certificate: a root, or the key of a signer.
func certified(i identity.Identity) (identity.Identity, error) {
	root, err := identity.NewIdentity{Kind: identity.RootIdentity, PEM: i.PEM}.Identity()
	if err != nil {
		root, err = identity.NewIdentity{Kind: identity.KeyIdentity, PEM: i.PEM}.Identity()
	}
	root.ID = i.ID
	return root, err
}

// keyring returns the keys of a signer, and the roots, as they were trusted at a time.
func (k Keys) keyring(dn string, at ledger.Time) (*identity.Keyring, error) {
	if k.ring != nil {
		return k.ring, nil
	}

	var then []identity.Identity
	for _, i := range k.identities {
		if i.CreatedAt > at && !k.pinned {
			continue // the ledger could not have trusted it
		}
		if i.RevokedAt >= at {
			i.RevokedAt = 0
		}
		if i.DN == "" {
			i.DN = dn
		}
		if !k.pinned { // what an identity may attest can change, and the ledger lists how it is now
			i.May, i.DNPattern = nil, ""
		}
		if i.Kind == identity.RootIdentity || i.DN == dn {
			then = append(then, i)
		}
	}
	return identity.NewKeyring(then, k.parseRoot, k.rootsAt(at)...)
}

// rootsAt returns the versions of trusted roots that were in effect at a time: several of one trusted
// root if it was replaced then.
func (k Keys) rootsAt(at ledger.Time) (then []identity.TrustedRoot) {
	for _, r := range k.roots {
		isReplaced := func(later identity.TrustedRoot) bool {
			return later.Name == r.Name && later.Version > r.Version && later.CreatedAt < at
		}
		if r.CreatedAt <= at && !slices.ContainsFunc(k.roots, isReplaced) {
			then = append(then, r)
		}
	}
	return then
}

// source says where the keys come from.
func (k Keys) source() string {
	if k.pinned {
		return "pinned"
	}
	return "listed by the ledger"
}
