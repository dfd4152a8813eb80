package verify

import (
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// A renamed repo is verified with what it had under its former name, and without what another repo
// recorded that has the name now. What only the ledger says is not checked.
func TestRenamedRepoIsVerified(t *testing.T) {
	h := newHost(t)
	ctx := t.Context()
	old := h.record(commitID(1), "lint:go", ledger.Pass)
	_, err := h.admin.ChangeRepo(ctx, "acme", "api", ledger.RepoChange{Name: new("core")})
	check(t, err)
	_, err = h.admin.CreateRepo(ctx, "acme", ledger.NewRepo{Name: "api"})
	check(t, err)
	h.attest(commitID(1), "test:go", ledger.Pass) // of the new api
	h.sign()

	s, p := newSite(t, h), newPerson(t)
	for _, repo := range []string{"core", "api"} {
		r := p.verify(s, func(s *Session) (verify.Report, error) { return s.Repo(ctx, repo) })
		wantVerified(t, r)
		want(t, r, checkNames, verify.NotChecked, "by the ledger, ")
		wantVerified(t, p.verify(s, func(s *Session) (verify.Report, error) { return s.Commit(ctx, repo, commitID(1)) }))
	}
	wantVerified(t, p.verify(s, func(s *Session) (verify.Report, error) { return s.Attestation(ctx, "core", old.ID) }))
}
