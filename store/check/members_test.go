package check_test

import (
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/check"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// newMemberDatabase returns a database with a member who is signed in.
func newMemberDatabase(t *testing.T) database {
	t.Helper()
	ctx := t.Context()
	s, path := newAcme(t, store.Options{Providers: storetest.Providers()})
	_, err := s.AddMember(ctx, "acme", member.NewMember{Issuer: "https://idp.example", Subject: "1",
		DN: "cn=Ann,ou=people-dev,o=acme", Role: member.Maintainer})
	must.OK(t, err)
	account := member.Account{Issuer: "https://idp.example", Subject: "1"}
	token, err := s.SignInMember(ctx, "acme", account, [32]byte{1}, [32]byte{2}, s.Now()+1e9)
	must.OK(t, err)
	ctx = store.WithActor(ctx, ledger.Actor{Name: token.Name, Token: token.ID})
	_, err = s.CreateToken(ctx, "acme", ledger.NewToken{Name: "ci", Scope: ledger.Write}, [32]byte{3})
	must.OK(t, err)
	must.OK(t, s.Close())
	return database{path: path}
}

// The tokens of members are checked with their roles, and DNs with the column that keeps them unique.
func TestMembers(t *testing.T) {
	d := newMemberDatabase(t)
	for name, test := range map[string]struct {
		change string
		want   []string
	}{
		"nothing": {"SELECT 1", nil},
		"the folded DN": {"UPDATE members SET folded = 'x'",
			[]string{": its DN, folded, is \"cn=ann,ou=people-dev,o=acme\", and the row"}},
		"the DN":       {"UPDATE members SET dn = 'cn=ann,ou=dev,o=acme'", []string{": its DN is not valid: "}},
		"a lower role": {"UPDATE members SET role = 2", []string{" with the scope maintain is valid, and the member "}},
		"a removal":    {"UPDATE members SET removed_at = 1", []string{" with the scope write is valid, and the member "}},
	} {
		t.Run(name, func(t *testing.T) { d.copy(t, run(test.change)).wantProblem(t, check.Options{}, test.want...) })
	}
}
