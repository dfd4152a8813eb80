package record

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/merges"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// Later claims are made only after those before them, or a search that ends at them would not find what is missing.
func TestClaimsAreRecordedInOrder(t *testing.T) {
	refused := &client.Error{Status: 422, Problem: ledger.Problem{Code: ledger.CodeTooManyMerges, Detail: "too many"}}
	for name, row := range map[string]struct {
		faults map[string]error // by commit
		want   string
		errs   int
	}{
		"all":                            {nil, "a b c", 0},
		"the first fails":                {map[string]error{"a": errors.New("no answer")}, "a", 2},
		"the second fails":               {map[string]error{"b": errors.New("no answer")}, "a b", 2},
		"the last fails":                 {map[string]error{"c": errors.New("no answer")}, "a b c", 1},
		"a commit has the most of them":  {map[string]error{"b": refused}, "a b c", 1},
		"one of the most, another fails": {map[string]error{"a": refused, "b": errors.New("no answer")}, "a b", 3},
	} {
		var got []string
		err := inOrder([]gitrepo.Merge{{Commit: "a"}, {Commit: "b"}, {Commit: "c"}}, func(m gitrepo.Merge) error {
			got = append(got, m.Commit)
			return row.faults[m.Commit]
		})
		var n int
		if err != nil {
			n = strings.Count(err.Error(), "\n") + 1
		}
		if strings.Join(got, " ") != row.want || n != row.errs {
			t.Errorf("%s: tried %q, error %v", name, got, err)
		}
	}
}

// A claim that came before the tests of its parent may count later. It is made again if the ledger knows why it never
// will, or if an early release has recorded it.
func TestStandingClaims(t *testing.T) {
	const me = "cn=mainline,o=acme"
	claim := ledger.MergeClaim{Source: "s", Parent: "p", Kind: "update", Identity: me, ParentState: ledger.Draft}
	for name, row := range map[string]struct {
		change func(c *ledger.MergeClaim)
		want   bool
	}{
		"one that counts":                {func(c *ledger.MergeClaim) { c.ParentState = ledger.Promotable }, true},
		"one that came before the tests": {func(*ledger.MergeClaim) {}, true},
		"one that was refused":           {func(c *ledger.MergeClaim) { c.Reason = "the object was unknown" }, false},
		"one of an early release":        {func(c *ledger.MergeClaim) { c.Parent = "" }, false},
		"one by somebody else":           {func(c *ledger.MergeClaim) { c.Identity = "cn=other,o=acme" }, false},
	} {
		c := claim
		row.change(&c)
		want := []merges.Claim{{Kind: attestation.Updated, Source: "s", Parent: "p"}}
		if got := standing([]ledger.MergeClaim{c}, me); row.want != slices.Equal(got, want) {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := standing([]ledger.MergeClaim{claim}, ""); got != nil {
		t.Errorf("claims of nobody: %v", got)
	}
}

// A search is repeated with more history only if that may help. What a deadline has cut short replaces nothing.
func TestSearchesDeepen(t *testing.T) {
	incomplete := fmt.Errorf("the clone ends here: %w", gitrepo.ErrDeepen)
	found := func(n int, undecided ...error) merges.Result {
		return merges.Result{Claims: make([]gitrepo.Merge, n), Undecided: undecided}
	}
	type attempt struct {
		merges.Result
		more bool
		err  error
		late bool // the deadline passes during it
	}
	for name, row := range map[string]struct {
		attempts []attempt
		want     int // claims
		err      error
	}{
		"all was found":          {[]attempt{{Result: found(1), more: true}}, 1, nil},
		"no more can be fetched": {[]attempt{{Result: found(1, incomplete)}}, 1, nil},
		"more is found":          {[]attempt{{Result: found(1, incomplete), more: true}, {Result: found(3)}}, 3, nil},
		"the mainline is cut":    {[]attempt{{more: true, err: incomplete}, {Result: found(2)}}, 2, nil},
		"it fails":               {[]attempt{{more: true, err: context.Canceled}}, 0, context.Canceled},
		"the first is late":      {[]attempt{{Result: found(1, incomplete), late: true}}, 1, nil},
		"a later one is late":    {[]attempt{{Result: found(2, incomplete), more: true}, {late: true}}, 2, nil},
		"a later one is late too": {
			[]attempt{{Result: found(2, incomplete), more: true}, {late: true, err: incomplete}}, 2, nil},
	} {
		ctx := &lateContext{Context: t.Context()}
		n := 0

		got, err := deepen(ctx, func(i int) (merges.Result, bool, error) {
			if n++; i != n-1 || i >= len(row.attempts) {
				t.Fatalf("%s: attempt %d", name, i)
			}
			a := row.attempts[i]
			ctx.late = a.late
			return a.Result, a.more, a.err
		})

		if len(got.Claims) != row.want || !errors.Is(err, row.err) || n != len(row.attempts) {
			t.Errorf("%s: %d claims after %d attempts, %v", name, len(got.Claims), n, err)
		}
	}
}

// A lateContext is one whose deadline has passed if late is set.
type lateContext struct {
	context.Context
	late bool
}

func (c *lateContext) Err() error {
	if c.late {
		return context.DeadlineExceeded
	}
	return nil
}
