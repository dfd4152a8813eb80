// Package storetest is the conformance suite of the ledger's storage: every
// engine must pass it.
package storetest

import (
	"reflect"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/store"
)

// A Database is one database of the engine under test.
type Database interface {
	// Open opens the database. It may be open already, as it is when another
	// process uses it. The suite closes the store.
	Open(t testing.TB, o store.Options) *store.Store
}

// New creates an empty database for one test, and deletes it in a cleanup of t.
type New func(t testing.TB) Database

// Run runs every test of the suite, each as a subtest.
func Run(t *testing.T, newDatabase New) {
	s := reflect.ValueOf(suite{newDatabase})
	for method, test := range s.Methods() {
		name, isTest := strings.CutPrefix(method.Name, "Test")
		run, hasSignature := test.Interface().(func(*testing.T))
		if !isTest || !hasSignature {
			t.Fatalf("%s is not a test: an exported method of the suite must be TestXxx(*testing.T)", method.Name)
		}
		t.Run(name, run)
	}
}

// A suite has the tests as its exported methods. Run finds them by reflection,
// so that none is left out.
type suite struct{ newDatabase New }
