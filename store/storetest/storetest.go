// Package storetest has the fixtures of tests that need a store. Below it is the conformance suite of the
// ledger's storage, which every engine must pass.
package storetest

import (
	"testing"

	"github.com/ledgerd/ledgerd/store"
)

// A Database is a database of the engine under test.
type Database interface {
	// Open opens the database, even if it is already open, as in another process. The
	// suite closes the store.
	Open(t testing.TB, o store.Options) *store.Store
	// Exec runs statements in the database, as somebody does who has access to it.
	Exec(t testing.TB, script string)
}

// New creates an empty database for a test and registers its deletion with t.Cleanup.
type New func(t testing.TB) Database

// A Suite is how the tests of the conformance suite create their fixtures.
type Suite struct {
	NewDatabase New
	Replicas    bool // whether each fixture has two stores, which take turns
}
