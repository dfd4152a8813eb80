package check_test

import (
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
)

// Orgs and repos that were renamed, archived, deleted or restored are no problem: events have the
// names of their time.
func TestLifecyclesAreChecked(t *testing.T) {
	d := newDatabase(t, 3)
	s, err := store.Open(t.Context(), d.path, store.Options{})
	ok(t, err)
	ctx := t.Context()
	rename := func(org, repo, name string) {
		t.Helper()
		_, err := s.ChangeRepo(ctx, org, repo, ledger.RepoChange{Name: &name})
		ok(t, err)
	}

	rename("acme", "api", "core")
	rename("acme", "core", "heart")
	_, err = s.ChangeRepo(ctx, "acme", "heart", ledger.RepoChange{Archived: new(true)})
	ok(t, err)
	ok(t, s.DeleteRepo(ctx, "acme", "web"))
	ok(t, s.Settle(ctx))
	wantNoProblems(t, d)

	rename("acme", "~2", "web")
	ok(t, s.DeleteOrg(ctx, "acme"))
	ok(t, s.Settle(ctx))
	wantNoProblems(t, d)
	_, err = s.ChangeOrg(ctx, "~1", ledger.OrgChange{Name: new("acme")})
	ok(t, err)
	ok(t, s.Settle(ctx))
	ok(t, s.Close())
	wantNoProblems(t, d)
}

func wantNoProblems(t *testing.T, d database) {
	t.Helper()
	for _, problem := range d.problems(t) {
		t.Error(problem)
	}
}
