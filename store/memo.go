package store

import (
	"crypto/sha256"

	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// A memo is the policy.Memo of a contract.
type memo struct {
	caches *caches
	digest string // of the contract
}

// memo returns the memo of a contract, or nil if it needs none.
func (m *caches) memo(c *policy.Contract, digest string) policy.Memo {
	if !c.NeedsMemo() {
		return nil
	}
	return memo{m, digest}
}

// Signer implements policy.Memo.
func (m memo) Signer(d identity.DN) (policy.SignerMatch, bool) {
	return m.caches.matches.get(matchKey{m.digest, d})
}

// SetSigner implements policy.Memo.
func (m memo) SetSigner(d identity.DN, match policy.SignerMatch) {
	m.caches.matches.put(matchKey{m.digest, d}, match)
}

// Scopes implements policy.Memo.
func (m memo) Scopes(key [sha256.Size]byte) (policy.Scopes, bool) {
	return m.caches.scopes.get(scopesKey{m.digest, key})
}

// SetScopes implements policy.Memo.
func (m memo) SetScopes(key [sha256.Size]byte, s policy.Scopes) {
	m.caches.scopes.put(scopesKey{m.digest, key}, s)
}
