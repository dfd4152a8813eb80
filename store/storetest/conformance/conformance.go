// Package conformance runs the conformance suite of the ledger's storage.
package conformance

import (
	"reflect"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/store/storetest"
	"github.com/ledgerd/ledgerd/store/storetest/access"
	"github.com/ledgerd/ledgerd/store/storetest/delivery"
	"github.com/ledgerd/ledgerd/store/storetest/overlaps"
	"github.com/ledgerd/ledgerd/store/storetest/record"
	"github.com/ledgerd/ledgerd/store/storetest/states"
	"github.com/ledgerd/ledgerd/store/storetest/webhooks"
)

// suites returns the tests of each package below store/storetest, as the exported methods of a value.
func suites(s storetest.Suite) []any {
	return []any{access.Tests(s), delivery.Tests(s), overlaps.Tests(s), record.Tests(s), states.Tests(s),
		webhooks.Tests(s)}
}

// Run runs all tests of the suite as subtests.
func Run(t *testing.T, newDatabase storetest.New) {
	run(t, newDatabase, func() bool { return false })
}

// RunReplicas is like Run, but two stores share the database of a test and take turns. Below the highest
// level of tests, that is a third of them, which the seed selects.
func RunReplicas(t *testing.T, newDatabase storetest.New) {
	random := testenv.Rand(t)
	run(t, newDatabase, func() bool { return testenv.CurrentLevel() == testenv.Full || random.IntN(3) == 0 })
}

// run finds the tests by reflection, so none can be forgotten.
func run(t *testing.T, newDatabase storetest.New, haveReplicas func() bool) {
	for i, suite := range suites(storetest.Suite{}) {
		for j := range reflect.TypeOf(suite).NumMethod() {
			tests := suites(storetest.Suite{NewDatabase: newDatabase, Replicas: haveReplicas()})[i]
			method, test := reflect.TypeOf(tests).Method(j), reflect.ValueOf(tests).Method(j)
			name, isTest := strings.CutPrefix(method.Name, "Test")
			run, hasSignature := test.Interface().(func(*testing.T))
			if !isTest || !hasSignature {
				t.Fatalf("%T.%s is not a test: an exported method of a suite must be TestXxx(*testing.T)", suite, method.Name)
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel() // each has databases of its own
				run(t)
			})
		}
	}
}
