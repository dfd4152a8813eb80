package policy

import (
	"crypto/sha256"

	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy/internal/assign"
)

// A Memo remembers what takes long to find out about commits under one contract. It may
// forget. Its methods may be called concurrently.
type Memo interface {
	Signer(identity.DN) (SignerMatch, bool)
	SetSigner(identity.DN, SignerMatch)
	Scopes(key [sha256.Size]byte) (Scopes, bool)
	SetScopes(key [sha256.Size]byte, s Scopes)
}

// A SignerMatch says for which requirements of a contract a signer may sign.
type SignerMatch struct {
	set      assign.Set
	compared int // the number of patterns, the first ones of the index
}

// A scope says whether a requirement applies to a commit.
type scope struct {
	// excluded says why it does not apply. It is empty if it applies.
	excluded string
	// unsure says why it applies, although finding out whether it does takes too long.
	unsure string
}

// Scopes says which requirements of a contract apply to a commit.
type Scopes struct{ list []scope }
