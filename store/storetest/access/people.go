package access

import (
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// A people is a fixture with people who sign in.
type people struct {
	*fixture
	used byte // states and sessions
}

func (s suite) newPeople(t *testing.T) *people {
	t.Helper()
	return &people{fixture: s.newFixture(t)}
}

// add adds a member with a subject and the DN cn=SUBJECT,ou=people-dev,o=acme.
func (fx *people) add(subject string, r member.Role) (member.Member, error) {
	fx.T.Helper()
	fx.Turn()
	n, err := member.NewMember{Issuer: storetest.Provider, Subject: subject, DN: "cn=" + subject + ",ou=people-dev,o=acme",
		Role: r}.Completed()
	must.OK(fx.T, err)
	return fx.AddMember(fx.T.Context(), "acme", n)
}

// rule admits the accounts of a group.
func (fx *people) rule(group string, r member.Role) member.Rule {
	fx.T.Helper()
	fx.Turn()
	created, err := fx.ruleIn("acme", group, r)
	must.OK(fx.T, err)
	return created
}

// ruleIn admits the accounts of a group to an org.
func (fx *people) ruleIn(org, group string, r member.Role) (member.Rule, error) {
	return fx.CreateMemberRule(fx.T.Context(), org, member.NewRule{Issuer: storetest.Provider, Claim: "groups",
		Value: group, Role: r, DN: "cn={login},ou=people-dev,o=" + org})
}

// account returns an account that is in groups.
func account(subject string, groups ...string) member.Account {
	return member.Account{Issuer: storetest.Provider, Subject: subject, Name: "Name of " + subject,
		Claims: map[string][]string{"groups": groups, "login": {subject}}}
}

// signIn signs an account in for an hour. It returns the token and the hash of the session.
func (fx *people) signIn(a member.Account) (token ledger.Token, session [32]byte, err error) {
	fx.T.Helper()
	return fx.signInTo("acme", a)
}

// signInTo is like signIn, to an org.
func (fx *people) signInTo(org string, a member.Account) (token ledger.Token, session [32]byte, err error) {
	fx.T.Helper()
	fx.Turn()
	fx.used++
	session = [32]byte{200, fx.used}
	token, err = fx.SignInMember(fx.T.Context(), org, a, [32]byte{fx.used}, session, fx.Now().Add(time.Hour))
	return token, session, err
}

// signedIn is like signIn, of an account that the org admits.
func (fx *people) signedIn(a member.Account) (ledger.Token, [32]byte) {
	fx.T.Helper()
	token, session, err := fx.signIn(a)
	must.OK(fx.T, err)
	return token, session
}

// isCurrent reports whether the token of a session is not revoked.
func (fx *people) isCurrent(session [32]byte) bool {
	fx.T.Helper()
	fx.Turn()
	token, _, err := fx.SessionToken(fx.T.Context(), session)
	must.OK(fx.T, err)
	return token.RevokedAt == 0
}

// createToken creates a token as the holder of another one.
func (fx *people) createToken(by ledger.Token, n ledger.NewToken, hash byte) ledger.Token {
	fx.T.Helper()
	fx.Turn()
	ctx := store.WithActor(fx.T.Context(), ledger.Actor{Name: by.Name, Token: by.ID})
	created, err := fx.CreateToken(ctx, "acme", n, [32]byte{hash})
	must.OK(fx.T, err)
	return created
}

// isValid reports whether the token with a hash is not revoked.
func (fx *people) isValid(hash byte) bool {
	fx.T.Helper()
	token, err := fx.TokenByHash(fx.T.Context(), [32]byte{hash})
	must.OK(fx.T, err)
	return token.RevokedAt == 0
}
