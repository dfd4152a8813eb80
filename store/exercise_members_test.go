package store_test

import (
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/store"
)

// members adds people and rules, signs people in and out, and creates a token as one of them.
func (e *exerciser) members() {
	ctx := e.t.Context()
	added, err := e.AddMember(ctx, "acme", member.NewMember{Issuer: "https://idp.example", Subject: "1",
		DN: "cn=una,ou=people-dev,o=acme", Role: member.Maintainer})
	must.OK(e.t, err)
	rule, err := e.CreateMemberRule(ctx, "acme", member.NewRule{Issuer: "https://idp.example", Claim: "groups",
		Value: "dev", Role: member.Reader, DN: "cn={sub},ou=people-dev,o=acme"})
	must.OK(e.t, err)
	e.ok(e.Member(ctx, "acme", added.ID))

	e.signIns(added)
	reader := member.Reader
	e.ok(e.ChangeMember(ctx, "acme", added.ID, member.Change{Role: &reader}))
	must.OK(e.t, e.RemoveMemberRule(ctx, "acme", rule.ID))
	e.ok(e.ChangeMember(ctx, "acme", added.ID, member.Change{Removed: new(true)}))
}

// signIns signs in a member whom an admin added, and one whom a rule admits.
func (e *exerciser) signIns(added member.Member) {
	ctx := e.t.Context()
	known := member.Account{Issuer: added.Issuer, Subject: added.Subject}
	admitted := member.Account{Issuer: added.Issuer, Subject: "2",
		Claims: map[string][]string{"groups": {"dev"}, "sub": {"2"}}}
	var last ledger.Token
	for n, account := range []member.Account{admitted, known} {
		e.ok(e.Offers(ctx, account))
		token, err := e.SignInMember(ctx, "acme", account, [32]byte{1, byte(n)}, [32]byte{90, byte(n)},
			e.Now().Add(time.Hour))
		must.OK(e.t, err)
		last = token
	}

	by := store.WithActor(ctx, ledger.Actor{Name: last.Name, Token: last.ID})
	e.ok(e.CreateToken(by, "acme",
		ledger.NewToken{Name: "limited", Scope: ledger.Read, Repos: []string{"api"}}, [32]byte{91}))
	e.ok(e.TokenByHash(ctx, [32]byte{91}))
	must.OK(e.t, e.Run(ctx, "INSERT INTO review_drafts (digest, token_id, repo_id, until) "+
		"SELECT randomblob(32), t.id, r.id, 1 FROM tokens t JOIN repos r ON r.org_id = t.org_id WHERE t.is_sign_in = 1"))
	must.OK(e.t, e.EndSignIn(ctx, "acme", added.ID, last.ID))

	must.OK(e.t, e.Run(ctx, "UPDATE members SET issuer = 'https://other.example' WHERE subject = '2'"))
	must.OK(e.t, e.EndSignInsOfProviders(ctx))
}
