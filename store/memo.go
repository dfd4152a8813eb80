package store

import (
	"crypto/sha256"
	"maps"

	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// A memo is the policy.Memo of a contract. That of a write also keeps what it has asked for:
// what it knows once, it knows until its end, whatever the caches forget.
type memo struct {
	caches *caches
	digest string       // of the contract
	kept   *preparation // nil for a read
}

// memo returns the memo of a contract, or nil if it needs none.
func (m *caches) memo(c *policy.Contract, digest string, kept *preparation) policy.Memo {
	if !c.NeedsMemo() {
		return nil
	}
	return memo{m, digest, kept}
}

// Signer implements policy.Memo.
func (m memo) Signer(d identity.DN) (policy.SignerMatch, bool) {
	key := matchKey{m.digest, d}
	if m.kept == nil {
		return m.caches.matches.get(key)
	}
	return keep(m.kept.signers, m.caches.matches, key)
}

// SetSigner implements policy.Memo.
func (m memo) SetSigner(d identity.DN, match policy.SignerMatch) {
	key := matchKey{m.digest, d}
	m.caches.matches.put(key, match)
	if m.kept != nil {
		m.kept.signers[key] = match
	}
}

// Scopes implements policy.Memo.
func (m memo) Scopes(key [sha256.Size]byte) (policy.Scopes, bool) {
	k := scopesKey{m.digest, key}
	if m.kept == nil {
		return m.caches.scopes.get(k)
	}
	return keep(m.kept.scopes, m.caches.scopes, k)
}

// SetScopes implements policy.Memo.
func (m memo) SetScopes(key [sha256.Size]byte, s policy.Scopes) {
	k := scopesKey{m.digest, key}
	m.caches.scopes.put(k, s)
	if m.kept != nil {
		m.kept.scopes[k] = s
	}
}

// keep returns what is kept, or else what is cached, which it then keeps.
func keep[K comparable, V any](kept map[K]V, cached *cache[K, V], key K) (V, bool) {
	v, ok := kept[key]
	if !ok {
		if v, ok = cached.get(key); ok {
			kept[key] = v
		}
	}
	return v, ok
}

// A preparation is what is known about commits under contracts. Other than the caches, it
// forgets nothing. Only one goroutine may use it at a time.
type preparation struct {
	tries   int // how often a write was prepared
	signers map[matchKey]policy.SignerMatch
	scopes  map[scopesKey]policy.Scopes
}

func newPreparation() *preparation {
	return &preparation{
		signers: make(map[matchKey]policy.SignerMatch), scopes: make(map[scopesKey]policy.Scopes),
	}
}

// count returns how often a write was prepared. p may be nil.
func (p *preparation) count() int {
	if p == nil {
		return 0
	}
	return p.tries
}

// add adds what another preparation knows. The other one may be nil.
func (p *preparation) add(other *preparation) {
	if other != nil {
		maps.Copy(p.signers, other.signers)
		maps.Copy(p.scopes, other.scopes)
	}
}
