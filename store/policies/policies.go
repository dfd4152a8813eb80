// Package policies is the room of the versions of repos' contracts. When a version comes into force, and what follows
// for commits, is decided in the rooms above. Its table is policies.
package policies

import (
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Contracts has the contracts. Its methods are safe for concurrent use.
type Contracts struct {
	db     *txn.DB
	parsed *txn.Cache[string, *policy.Contract] // by digest
}

// maxContracts limits the cached contracts, which may be large.
const maxContracts = 1000

// New returns the room of a database.
func New(db *txn.DB) *Contracts {
	return &Contracts{db, txn.NewCache[string, *policy.Contract](maxContracts)}
}
