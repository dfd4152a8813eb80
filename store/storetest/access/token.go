package access

import (
	"slices"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// A lower role revokes the tokens that permit more. A removal revokes all tokens; a member who is
// restored signs in again.
func (s suite) TestTokensEndWithTheRoleOfTheirMember(t *testing.T) {
	fx := s.newPeople(t)
	ctx := t.Context()
	ann, err := fx.add("ann", member.Admin)
	must.OK(t, err)
	bob, err := fx.add("bob", member.Admin)
	must.OK(t, err)
	ofAnn, session := fx.signedIn(account("ann"))
	ofBob, other := fx.signedIn(account("bob"))
	fx.createToken(ofAnn, ledger.NewToken{Name: "high", Scope: ledger.Admin}, 1)
	low := fx.createToken(ofAnn, ledger.NewToken{Name: "low", Scope: ledger.Write}, 2)
	fx.createToken(low, ledger.NewToken{Name: "by a token", Scope: ledger.Read}, 3)
	fx.createToken(ofBob, ledger.NewToken{Name: "of bob", Scope: ledger.Admin}, 4)
	fx.createToken(ledger.Token{Name: "host"}, ledger.NewToken{Name: "of the host", Scope: ledger.Admin}, 5)
	if low.Member != ann.ID || low.CreatedBy != ofAnn.Name+" ("+ofAnn.ID+")" || low.IsSignIn {
		t.Errorf("the token is %+v", low)
	}
	want := func(when string, valid ...bool) {
		t.Helper()
		got := []bool{fx.isCurrent(session), fx.isValid(1), fx.isValid(2), fx.isValid(3), fx.isValid(4), fx.isValid(5),
			fx.isCurrent(other)}
		if !slices.Equal(got, valid) {
			t.Errorf("%s, valid are %v, want %v", when, got, valid)
		}
	}

	want("before", true, true, true, true, true, true, true)
	changed, err := fx.ChangeMember(ctx, "acme", ann.ID, member.Change{Role: new(member.Contributor)})
	must.OK(t, err)
	if changed.Role != member.Contributor || changed.RemovedAt != 0 {
		t.Errorf("changed: %+v", changed)
	}
	want("with a lower role", false, false, true, true, true, true, true)
	changed, err = fx.ChangeMember(ctx, "acme", ann.ID, member.Change{Removed: new(true)})
	must.OK(t, err)
	if changed.RemovedAt != fx.Now() || changed.Role != member.Contributor {
		t.Errorf("removed: %+v", changed)
	}
	want("after the removal", false, false, false, false, true, true, true)
	_, _, err = fx.signIn(account("ann"))
	storetest.WantCode(t, err, ledger.CodeForbidden)

	_, err = fx.ChangeMember(ctx, "acme", ann.ID, member.Change{Removed: new(false)})
	must.OK(t, err)
	want("restored", false, false, false, false, true, true, true)
	if again, _ := fx.signedIn(account("ann")); again.Scope != ledger.Write || again.Member != ann.ID {
		t.Errorf("signed in again: %+v", again)
	}
	if got, err := fx.Member(ctx, "acme", bob.ID); err != nil || got.Role != member.Admin {
		t.Errorf("the other member is %+v, %v", got, err)
	}
}

// A token that is revoked during its request creates no other token, which would outlast the
// revocation.
func (s suite) TestRevokedTokensCreateNoTokens(t *testing.T) {
	fx := s.newPeople(t)
	ann, err := fx.add("ann", member.Admin)
	must.OK(t, err)
	signedIn, _ := fx.signedIn(account("ann"))
	own := fx.createToken(signedIn, ledger.NewToken{Name: "own", Scope: ledger.Admin}, 1)
	other := fx.createToken(ledger.Token{Name: "host"}, ledger.NewToken{Name: "other", Scope: ledger.Admin}, 2)
	lower := member.Maintainer
	_, err = fx.ChangeMember(t.Context(), "acme", ann.ID, member.Change{Role: &lower})
	must.OK(t, err)
	must.OK(t, fx.RevokeToken(t.Context(), "acme", other.ID))

	for n, by := range []ledger.Token{signedIn, own, other} {
		fx.Turn()
		ctx := store.WithActor(t.Context(), ledger.Actor{Name: by.Name, Token: by.ID})
		_, err := fx.CreateToken(ctx, "acme", ledger.NewToken{Name: "late", Scope: ledger.Read}, [32]byte{byte(10 + n)})
		storetest.WantCode(t, err, ledger.CodeUnauthenticated)
	}
}

// A token can be limited to repos of the org.
func (s suite) TestTokensOfRepos(t *testing.T) {
	fx := s.newPeople(t)
	ctx := t.Context()
	_, err := fx.CreateRepo(ctx, "acme", ledger.NewRepo{Name: "web"}, "host")
	must.OK(t, err)
	by := ledger.Token{Name: "host"}
	limited := fx.createToken(by, ledger.NewToken{Name: "x", Scope: ledger.Write, Repos: []string{"web", "api", "WEB"}}, 1)
	free := fx.createToken(by, ledger.NewToken{Name: "y", Scope: ledger.Write}, 2)
	if !slices.Equal(limited.Repos, []string{"api", "web"}) || !limited.IsLimited || limited.CreatedBy != "host" {
		t.Errorf("the limited token is %+v", limited)
	}
	if free.Repos != nil || free.IsLimited {
		t.Errorf("the other token is %+v", free)
	}

	name := "renamed"
	_, err = fx.ChangeRepo(ctx, "acme", "web", ledger.RepoChange{Name: &name})
	must.OK(t, err)
	fx.Turn()
	got, err := fx.TokenByHash(ctx, [32]byte{1})
	must.OK(t, err)
	if !slices.Equal(got.Repos, []string{"api", "renamed"}) || !got.IsLimited {
		t.Errorf("after a repo was renamed, the token is %+v", got)
	}
	_, err = fx.CreateToken(ctx, "acme",
		ledger.NewToken{Name: "z", Scope: ledger.Read, Repos: []string{"none"}}, [32]byte{3})
	storetest.WantCode(t, err, ledger.CodeNotFound)
}
