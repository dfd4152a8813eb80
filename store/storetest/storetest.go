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
}

// New creates an empty database for a test and registers its deletion with t.Cleanup.
type New func(t testing.TB) Database

// Run runs all tests of the suite as subtests.
func Run(t *testing.T, newDatabase New) { run(t, suite{newDatabase: newDatabase}) }

// RunReplicas is like Run, but two stores share the database of a test and take turns. Below the highest
// level of tests, that is a third of them, which the seed selects.
func RunReplicas(t *testing.T, newDatabase New) {
	run(t, suite{newDatabase: newDatabase, shares: true})
}

func run(t *testing.T, tests suite) {
	random := testenv.Rand(t)
	for i := range reflect.TypeFor[suite]().NumMethod() {
		tests.replicas = tests.shares && (testenv.CurrentLevel() == testenv.Full || random.IntN(3) == 0)
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
	shares      bool // whether stores can share a database of the engine
	replicas    bool // whether each fixture of this test has two stores
}

// level is the least level at which the suite is thorough. It is a higher one for engines that stores can share,
// since their writes take several times as long.
func (s suite) level() testenv.Level {
	if s.shares {
		return testenv.Full
	}
	return testenv.Push
}

// fillsALimit skips a test that writes thousands of rows, unless the suite is thorough.
func (s suite) fillsALimit(t *testing.T) {
	t.Helper()
	testenv.From(t, s.level(), "fills a limit")
}

// pick returns how many rows a test writes.
func (s suite) pick(few, thorough int) int {
	if testenv.CurrentLevel() < s.level() {
		return few
	}
	return thorough
}
