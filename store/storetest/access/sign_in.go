package access

import (
	"slices"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// A sign-in is a token of the member without a secret, with one session. It is not in lists of tokens.
func (s suite) TestSignIns(t *testing.T) {
	fx := s.newPeople(t)
	ctx := t.Context()
	fx.rule("dev", member.Maintainer)
	a := account("ann", "dev")
	a.Email, a.AuthTime = "ann@acme.example", fx.Now().Add(-time.Minute)
	token, session := fx.signedIn(a)
	fx.Turn()
	got, ends, err := fx.SessionToken(ctx, session)
	must.OK(t, err)
	if !got.IsSignIn || got.DN != "cn=ann,ou=people-dev,o=acme" || got.Scope != ledger.Maintain || got.Name != got.DN ||
		got.AuthTime != a.AuthTime || got.ExpiresAt != fx.Now().Add(time.Hour) || ends != got.ExpiresAt ||
		got.CreatedBy != "" || got.ID != token.ID {
		t.Errorf("the token is %+v until %s", got, ends)
	}
	m, err := fx.Member(ctx, "acme", got.Member)
	must.OK(t, err)
	if m.Name != a.Name || m.Email != a.Email || !m.ByRule || m.SignedInAt != fx.Now() || m.Role != member.Maintainer {
		t.Errorf("the member is %+v", m)
	}

	tokens, err := fx.Tokens(ctx, "acme", store.Query{Limit: 10})
	must.OK(t, err)
	if len(tokens.Data) != 0 {
		t.Errorf("the list of tokens has %+v", tokens.Data)
	}
	storetest.WantCode(t, fx.RevokeToken(ctx, "acme", token.ID), ledger.CodeNotFound)
	if !fx.isCurrent(session) {
		t.Error("the sign-in was revoked as a token")
	}
}

// A member sees and ends their own sign-ins, and an admin those of all.
func (s suite) TestSignInsAreListedAndEnded(t *testing.T) {
	fx := s.newPeople(t)
	ctx := t.Context()
	fx.rule("dev", member.Reader)
	first, session := fx.signedIn(account("ann", "dev"))
	second, _ := fx.signedIn(account("ann", "dev"))
	other, _ := fx.signedIn(account("bob", "dev"))
	want := func(owner string, want ...string) {
		t.Helper()
		fx.Turn()
		list, err := fx.SignIns(ctx, "acme", owner, store.Query{Limit: 10})
		must.OK(t, err)
		var got []string
		for _, token := range list.Data {
			got = append(got, token.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("the sign-ins of %q are %v, want %v", owner, got, want)
		}
	}

	want("", first.ID, second.ID, other.ID)
	want(first.Member, first.ID, second.ID)
	want(other.Member, other.ID)
	storetest.WantCode(t, fx.EndSignIn(ctx, "acme", other.Member, first.ID), ledger.CodeNotFound)
	storetest.WantCode(t, fx.EndSignIn(ctx, "acme", "", "tok_none"), ledger.CodeNotFound)
	plain := fx.createToken(ledger.Token{Name: "host"}, ledger.NewToken{Name: "ci", Scope: ledger.Read}, 1)
	storetest.WantCode(t, fx.EndSignIn(ctx, "acme", "", plain.ID), ledger.CodeNotFound)
	must.OK(t, fx.EndSignIn(ctx, "acme", first.Member, first.ID))
	must.OK(t, fx.EndSignIn(ctx, "acme", first.Member, first.ID))
	if fx.isCurrent(session) {
		t.Error("the session of a sign-in that ended is current")
	}
	want("", second.ID, other.ID)
	must.OK(t, fx.EndSignIn(ctx, "acme", "", other.ID))
	want(other.Member)
	fx.Clock.Advance(time.Hour)
	want("")
	_, err := fx.SignIns(ctx, "acme", "mem_none", store.Query{Limit: 10})
	storetest.WantCode(t, err, ledger.CodeNotFound)
}

// The state of a sign-in counts once.
func (s suite) TestStatesOfSignInsCountOnce(t *testing.T) {
	fx := s.newPeople(t)
	fx.rule("dev", member.Reader)
	state, expires := [32]byte{1}, fx.Now().Add(time.Hour)
	_, err := fx.SignInMember(t.Context(), "acme", account("ann", "dev"), state, [32]byte{2}, expires)
	must.OK(t, err)
	fx.Turn()
	_, err = fx.SignInMember(t.Context(), "acme", account("bob", "dev"), state, [32]byte{3}, expires)
	storetest.WantCode(t, err, ledger.CodeUnauthenticated)
}

// Errors of sign-ins do not reveal which orgs exist.
func (s suite) TestSignInsDoNotRevealWhichOrgsExist(t *testing.T) {
	fx := s.newPeople(t)
	ann, err := fx.add("ann", member.Reader)
	must.OK(t, err)
	_, err = fx.ChangeMember(t.Context(), "acme", ann.ID, member.Change{Removed: new(true)})
	must.OK(t, err)
	fx.rule("dev", member.Reader)

	for n, test := range []struct {
		org     string
		account member.Account
	}{
		{"acme", account("bob", "sales")},
		{"acme", account("ann", "dev")}, // an admin has removed this member
		{"none", account("bob", "dev")},
	} {
		_, err := fx.SignInMember(t.Context(), test.org, test.account, [32]byte{byte(n)}, [32]byte{9}, fx.Now().Add(1))
		storetest.WantCode(t, err, ledger.CodeForbidden)
		if want := "this account may not sign in to org " + test.org; err.Error() != want {
			t.Errorf("%+v: %q, want %q", test, err, want)
		}
	}
}

// Rules decide again at each sign-in of a member whom they admitted. If no rule admits the member any
// more, the member is removed.
func (s suite) TestRulesDecideAtEachSignIn(t *testing.T) {
	fx := s.newPeople(t)
	ctx := t.Context()
	fx.rule("dev", member.Contributor)
	ops := fx.rule("ops", member.Admin)
	token, session := fx.signedIn(account("ann", "dev", "ops"))
	if token.Scope != ledger.Admin {
		t.Errorf("by two rules: %+v", token)
	}
	must.OK(t, fx.RemoveMemberRule(ctx, "acme", ops.ID))
	if !fx.isCurrent(session) {
		t.Error("the sign-in ended with the rule")
	}
	if again, _ := fx.signedIn(account("ann", "dev", "ops")); again.Scope != ledger.Write || again.Member != token.Member {
		t.Errorf("without the higher rule: %+v", again)
	}
	if fx.isCurrent(session) {
		t.Error("a sign-in permits more than the role")
	}

	_, session = fx.signedIn(account("ann", "dev"))
	_, _, err := fx.signIn(account("ann"))
	storetest.WantCode(t, err, ledger.CodeForbidden)
	m, err := fx.Member(ctx, "acme", token.Member)
	must.OK(t, err)
	if m.RemovedAt == 0 || m.Role != member.Contributor || !m.ByRule || fx.isCurrent(session) {
		t.Errorf("without a rule: %+v", m)
	}
	if again, _ := fx.signedIn(account("ann", "dev")); again.Member != token.Member {
		t.Errorf("by a rule again: %+v", again)
	}
}

// A rule does not give an account the DN of a registered signer, or of another member.
func (s suite) TestRulesGiveNoDNThatIsTaken(t *testing.T) {
	fx := s.newPeople(t)
	ctx := t.Context()
	fx.rule("dev", member.Reader)
	fx.NewSigner("cn=Rita,ou=people-dev,o=acme")
	_, err := fx.add("bob", member.Reader)
	must.OK(t, err)
	for _, login := range []string{"rita", "BOB"} {
		a := account("another "+login, "dev")
		a.Claims["login"] = []string{login}
		_, _, err := fx.signIn(a)
		storetest.WantCode(t, err, ledger.CodeAlreadyExists)
	}
	list, err := fx.Identities(ctx, "acme", store.Query{Limit: 10})
	must.OK(t, err)
	must.OK(t, fx.RevokeIdentity(ctx, "acme", list.Data[0].ID))
	_, _, err = fx.signIn(account("rita", "dev"))
	storetest.WantCode(t, err, ledger.CodeAlreadyExists)

	_, err = fx.add("rita", member.Reader) // an admin may
	must.OK(t, err)
	if token, _ := fx.signedIn(account("rita", "dev")); token.DN != "cn=rita,ou=people-dev,o=acme" {
		t.Errorf("signed in: %+v", token)
	}
	a := account("carl", "dev")
	delete(a.Claims, "login")
	_, _, err = fx.signIn(a)
	storetest.WantCode(t, err, ledger.CodeForbidden)
}

// A member has at most 50 sign-ins: the oldest end, with an audit event by the member.
func (s suite) TestSignInsOfAMemberAreLimited(t *testing.T) {
	fx := s.newPeople(t)
	fx.rule("dev", member.Reader)
	_, other := fx.signedIn(account("bob", "dev"))
	var sessions [][32]byte
	var ended []string
	for n := range member.MaxSignIns + 3 {
		token, session := fx.signedIn(account("ann", "dev"))
		sessions = append(sessions, session)
		if n < 3 {
			ended = append(ended, token.Name+" ends "+token.ID)
		}
	}
	for n, session := range sessions {
		if fx.isCurrent(session) != (n >= 3) {
			t.Errorf("sign-in %d of %d is current: %t", n+1, len(sessions), n < 3)
		}
	}
	if !fx.isCurrent(other) {
		t.Error("the sign-in of another member ended")
	}

	var audited []string
	for _, e := range storetest.EventsOf[ledger.AuditEvent](fx.Fixture) {
		if e.Action == ledger.AuditSessionEnded {
			audited = append(audited, e.By.Name+" ends "+e.Target)
		}
	}
	if !slices.Equal(audited, ended) {
		t.Errorf("the audit has %q, want %q", audited, ended)
	}
}

// Sign-ins are deleted an hour after they expired.
func (s suite) TestSignInsArePruned(t *testing.T) {
	fx := s.newPeople(t)
	ctx := t.Context()
	fx.rule("dev", member.Reader)
	token, _ := fx.signedIn(account("ann", "dev"))
	fx.createToken(token, ledger.NewToken{Name: "me", Scope: ledger.Read, ExpiresAt: fx.Now().Add(time.Minute)}, 1)
	exists := func() bool {
		err := fx.CreateSession(ctx, token.ID, [32]byte{99}, fx.Now())
		if err != nil {
			storetest.WantCode(t, err, ledger.CodeNotFound)
		}
		return err == nil
	}

	fx.Clock.Advance(2*time.Hour - time.Millisecond)
	must.OK(t, fx.Prune(ctx))
	if !exists() {
		t.Error("it was deleted less than an hour after it expired")
	}
	fx.Clock.Advance(time.Millisecond)
	must.OK(t, fx.Prune(ctx))
	if exists() {
		t.Error("it was not deleted an hour after it expired")
	}
	if !fx.isValid(1) {
		t.Error("a token of the member was revoked")
	}
}
