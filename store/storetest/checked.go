package storetest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/identity/sigstore"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/check"
)

// A Located is a database that has a name: the path of its file, or a URL.
type Located interface {
	Database
	Name() string
}

// A checked is a database that is checked at the end of its test.
type checked struct {
	Located
	now func() time.Time // of the last store
}

func (c *checked) Open(t testing.TB, o store.Options) *store.Store {
	c.now = o.Now
	return c.Located.Open(t, o)
}

// Checked returns a function that creates databases like newDatabase, and checks what a test has left in
// them.
func Checked(newDatabase func(testing.TB) Located) New {
	return func(t testing.TB) Database {
		c := &checked{Located: newDatabase(t)}
		t.Cleanup(func() { c.check(t) })
		return c
	}
}

// Report checks the database, which may be open. It logs the problems, and returns their number and whether
// everything was checked.
func (fx *Fixture) Report() (found int64, complete bool) {
	fx.T.Helper()
	c := fx.Database.(*checked)
	report, err := check.Run(fx.T.Context(), c.Name(), check.Options{ParseRoot: sigstore.ParseRoot, Now: c.now})
	must.OK(fx.T, err)
	for _, p := range report.Problems {
		fx.T.Log("problem:", p)
	}
	return report.Found, report.Complete
}

func (c *checked) check(t testing.TB) {
	report, err := check.Run(context.Background(), c.Name(), check.Options{ParseRoot: sigstore.ParseRoot, Now: c.now})
	must.OK(t, err)

	// Some tests record what was never signed.
	isMade := func(p check.Problem) bool {
		return p.Check == verify.CheckSignature || p.Check == verify.CheckPasskey ||
			p.Check == verify.CheckRecord && (strings.HasPrefix(p.Problem, "predicate: ") ||
				strings.HasPrefix(p.Problem, "slot: ") || strings.Contains(p.Problem, " finished at "))
	}
	hasMade := slices.ContainsFunc(report.Problems, isMade)
	for _, p := range report.Problems {
		if !isMade(p) && !(hasMade && p.Check == "exception") {
			t.Errorf("problem: %s", p)
		}
	}
}
