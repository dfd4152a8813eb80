package record

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attention"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// An org sees the evidence of its own that expires, however much of others expires earlier, and does
// not learn that there is any.
func (s suite) TestAttentionDoesNotDependOnOtherOrgs(t *testing.T) {
	fx := s.newFixture(t)
	const expires = `{"requirements":[{"state":"ATTESTED","predicate":"test:*","max_age":"%s"},
		{"state":"PROMOTABLE","predicate":"review:*"}]}`
	fx.SetContract(fmt.Sprintf(expires, "6h"))
	fx.Complete(sha(1), ledger.Registration{Branch: "feature"})
	fx.NewSigner("cn=ci,ou=build,o=acme").Attest(sha(1), "test:go", ledger.Pass)
	expiring := func() (items, more int) {
		t.Helper()
		list, err := fx.Attention(t.Context(), "acme", store.AttentionFilter{
			Query: store.Query{Limit: 100}, Kind: attention.Expiring})
		must.OK(t, err)
		i := slices.IndexFunc(list.Counts, func(c attention.Count) bool { return c.Kind == attention.Expiring })
		return len(list.Data), map[bool]int{true: 1}[list.Counts[i].More]
	}
	if items, more := expiring(); items != 1 || more != 0 {
		t.Fatalf("%d items, more: %d, want 1", items, more)
	}

	// The other org has the name of acme while its commits are recorded.
	ctx := t.Context()
	rename := func(from, to string) {
		t.Helper()
		_, err := fx.ChangeOrg(ctx, from, ledger.OrgChange{Name: &to})
		must.OK(t, err)
	}
	rename("acme", "initech")
	storetest.CreateAcme(t, fx.Store)
	fx.SetContract(fmt.Sprintf(expires, "1h"))
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	for n := range 500 {
		ci.Attest(sha(100+n), "test:go", ledger.Pass)
	}
	rename("acme", "globex")
	rename("initech", "acme")
	if items, more := expiring(); items != 1 || more != 0 {
		t.Errorf("next to an org with 500 commits: %d items, more: %d, want 1", items, more)
	}
}

// A cursor is of use in its own list and org alone.
func (s suite) TestCursorsAreBoundToTheirList(t *testing.T) {
	fx := s.newFixture(t)
	ctx := t.Context()
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	for n := range 3 {
		ci.Attest(sha(n), "test:go", ledger.Pass)
		_, err := fx.CreateRepo(ctx, "acme", ledger.NewRepo{Name: fmt.Sprint("r", n)}, "host")
		must.OK(t, err)
	}
	_, err := fx.CreateOrg(ctx, "globex")
	must.OK(t, err)
	first := store.Query{Limit: 1}
	repos, err := fx.Repos(ctx, "acme", first)
	must.OK(t, err)
	commits, err := fx.Commits(ctx, "acme", "api", store.CommitFilter{Query: first})
	must.OK(t, err)

	at := func(cursor string) store.Query { return store.Query{Limit: 1, Cursor: cursor} }
	fx.Turn() // the other server knows the key, too
	if _, err := fx.Repos(ctx, "acme", at(repos.NextCursor)); err != nil {
		t.Errorf("the cursor of a list is refused: %v", err)
	}
	_, err = fx.Repos(ctx, "globex", at(repos.NextCursor))
	storetest.WantCode(t, err, ledger.CodeInvalidCursor)
	_, err = fx.Repos(ctx, "acme", at(commits.NextCursor))
	storetest.WantCode(t, err, ledger.CodeInvalidCursor)
	_, err = fx.Commits(ctx, "acme", "r0", store.CommitFilter{Query: at(commits.NextCursor)})
	storetest.WantCode(t, err, ledger.CodeInvalidCursor)
	_, err = fx.Commits(ctx, "acme", "api", store.CommitFilter{Query: at("MQ")}) // of earlier releases
	storetest.WantCode(t, err, ledger.CodeInvalidCursor)
}
