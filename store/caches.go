package store

import (
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/txn"
)

// caches holds database rows that never change under their key.
type caches struct {
	// active holds contracts with expressions, by repoKey. They were active when the repo's
	// last attestation was recorded.
	active *txn.Cache[string, *policy.Contract]
}

// maxContracts limits the cached contracts, which may be large.
const maxContracts = 1000

func newCaches() *caches {
	return &caches{
		active: txn.NewCache[string, *policy.Contract](maxContracts),
	}
}
