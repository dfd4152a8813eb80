// Package webhooks tests which deliveries are due, and what their outcomes change.
package webhooks

import (
	"testing"

	"github.com/ledgerd/ledgerd/store/storetest"
)

// A suite has the tests as its exported methods.
type suite storetest.Suite

// Tests returns a value whose exported methods are the tests.
func Tests(s storetest.Suite) any { return suite(s) }

// A fixture has methods for the tests of this package.
type fixture struct{ *storetest.Fixture }

func (s suite) newFixture(t testing.TB) *fixture {
	t.Helper()
	return &fixture{storetest.Suite(s).NewFixture(t)}
}

// sha returns the SHA of the n-th example commit.
func sha(n int) string { return storetest.SHA(n) }
