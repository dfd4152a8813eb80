// Package storetest is the conformance suite of the ledger's storage. Every engine
// must pass it.
package storetest

import (
	"reflect"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/testenv"
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

// Run runs all tests of the suite as subtests.
func Run(t *testing.T, newDatabase New) {
	run(t, newDatabase, func() bool { return false })
}

// RunReplicas is like Run, but two stores share the database of a test and take turns. Below the highest
// level of tests, that is a third of them, which the seed selects.
func RunReplicas(t *testing.T, newDatabase New) {
	random := testenv.Rand(t)
	run(t, newDatabase, func() bool { return testenv.CurrentLevel() == testenv.Full || random.IntN(3) == 0 })
}

func run(t *testing.T, newDatabase New, haveReplicas func() bool) {
	for i := range reflect.TypeFor[suite]().NumMethod() {
		tests := suite{newDatabase: newDatabase, replicas: haveReplicas()}
		method, test := reflect.TypeFor[suite]().Method(i), reflect.ValueOf(tests).Method(i)
		name, isTest := strings.CutPrefix(method.Name, "Test")
		run, hasSignature := test.Interface().(func(*testing.T))
		if !isTest || !hasSignature {
			t.Fatalf("%s is not a test: an exported method of the suite must be TestXxx(*testing.T)", method.Name)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each has databases of its own
			run(t)
		})
	}
}

// A suite has the tests as its exported methods. Run finds them by reflection, so
// none can be forgotten.
type suite struct {
	newDatabase New
	replicas    bool // whether each fixture of the test has two stores
}
