package access

import (
	"crypto/ed25519"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

func (s suite) TestMembers(t *testing.T) {
	fx := s.newPeople(t)
	ctx := t.Context()
	ann, err := fx.add("ann", member.Maintainer)
	must.OK(t, err)
	bob, err := fx.add("bob", member.Reader)
	must.OK(t, err)
	want := member.Member{ID: ann.ID, Org: "acme", Issuer: storetest.Provider, Subject: "ann",
		DN: "cn=ann,ou=people-dev,o=acme", Role: member.Maintainer, CreatedAt: fx.Now()}
	if ann != want || ann.ID == "" {
		t.Errorf("added %+v, want %+v", ann, want)
	}

	fx.Turn()
	list, err := fx.Members(ctx, "acme", store.Query{Limit: 10})
	must.OK(t, err)
	if !slices.Equal(list.Data, []member.Member{ann, bob}) {
		t.Errorf("the members are %+v", list.Data)
	}
	if got, err := fx.Member(ctx, "acme", ann.ID); err != nil || got != ann {
		t.Errorf("got %+v, %v", got, err)
	}
	_, err = fx.Member(ctx, "acme", "mem_none")
	storetest.WantCode(t, err, ledger.CodeNotFound)
	_, err = fx.ChangeMember(ctx, "acme", "mem_none", member.Change{})
	storetest.WantCode(t, err, ledger.CodeNotFound)
}

// An account is one member of an org, and a DN is that of one member. Other orgs have members of their own.
func (s suite) TestAccountsAndDNsAreOfOneMember(t *testing.T) {
	fx := s.newPeople(t)
	ctx := t.Context()
	ann, err := fx.add("ann", member.Reader)
	must.OK(t, err)
	_, err = fx.add("ann", member.Admin)
	storetest.WantCode(t, err, ledger.CodeAlreadyExists)

	_, err = fx.ChangeMember(ctx, "acme", ann.ID, member.Change{Removed: new(true)})
	must.OK(t, err)
	_, err = fx.add("ann", member.Admin)
	storetest.WantCode(t, err, ledger.CodeAlreadyExists)
	for _, dn := range []string{ann.DN, "cn=ANN,ou=People-Dev,o=ACME"} {
		_, err := fx.AddMember(ctx, "acme", member.NewMember{
			Issuer: storetest.Provider, Subject: "other", DN: dn, Role: member.Reader})
		storetest.WantCode(t, err, ledger.CodeAlreadyExists)
	}

	_, err = fx.CreateOrg(ctx, "globex")
	must.OK(t, err)
	_, err = fx.AddMember(ctx, "globex",
		member.NewMember{Issuer: storetest.Provider, Subject: "ann", DN: ann.DN, Role: member.Reader})
	must.OK(t, err)
	_, err = fx.Member(ctx, "globex", ann.ID)
	storetest.WantCode(t, err, ledger.CodeNotFound)
}

func (s suite) TestMemberRules(t *testing.T) {
	fx := s.newPeople(t)
	ctx := t.Context()
	first, second := fx.rule("dev", member.Contributor), fx.rule("ops", member.Admin)
	list, err := fx.MemberRules(ctx, "acme", store.Query{Limit: 10})
	must.OK(t, err)
	if !slices.Equal(list.Data, []member.Rule{first, second}) || first.Org != "acme" || first.CreatedAt != fx.Now() {
		t.Errorf("the rules are %+v", list.Data)
	}

	must.OK(t, fx.RemoveMemberRule(ctx, "acme", first.ID))
	storetest.WantCode(t, fx.RemoveMemberRule(ctx, "acme", first.ID), ledger.CodeNotFound)
	storetest.WantCode(t, fx.RemoveMemberRule(ctx, "acme", "mrl_none"), ledger.CodeNotFound)
	list, err = fx.MemberRules(ctx, "acme", store.Query{Limit: 10})
	must.OK(t, err)
	if !slices.Equal(list.Data, []member.Rule{second}) {
		t.Errorf("after the first was removed, the rules are %+v", list.Data)
	}
}

// An org that is restored has no members until an admin restores them.
func (s suite) TestMembersEndWithTheirOrg(t *testing.T) {
	fx := s.newPeople(t)
	ctx := t.Context()
	_, err := fx.add("ann", member.Admin)
	must.OK(t, err)
	fx.rule("dev", member.Reader)
	must.OK(t, fx.DeleteOrg(ctx, "acme"))
	deleted, err := fx.DeletedOrgs(ctx, store.Query{Limit: 10})
	must.OK(t, err)
	_, err = fx.ChangeOrg(ctx, deleted.Data[0].Name, ledger.OrgChange{Name: new("acme")})
	must.OK(t, err)
	for _, a := range []member.Account{account("ann"), account("bob", "dev")} {
		_, _, err = fx.signIn(a)
		storetest.WantCode(t, err, ledger.CodeForbidden)
	}
}

// A person who registers the key that they used elsewhere under the DN of the member is one signer.
func (s suite) TestAMemberWithAKeyIsOneSigner(t *testing.T) {
	fx := s.newPeople(t)
	ctx := t.Context()
	contract, err := policy.Parse([]byte(
		`{"requirements":[{"state":"ATTESTED","predicate":"review:*","threshold":2}]}`))
	must.OK(t, err)
	_, err = fx.SetPolicy(ctx, "acme", "api", contract, 0, "host")
	must.OK(t, err)
	ann, err := fx.add("ann", member.Contributor)
	must.OK(t, err)

	key := fx.NewSigner("cn=ann,ou=laptops,o=acme")
	key.Attest(sha(1), "review:code", ledger.Pass)
	list, err := fx.Identities(ctx, "acme", store.Query{Limit: 10})
	must.OK(t, err)
	must.OK(t, fx.RevokeIdentity(ctx, "acme", list.Data[0].ID))
	again, err := identity.NewIdentity{Kind: identity.KeyIdentity, DN: ann.DN,
		PEM: must.PublicPEM(t, key.Key.Public().(ed25519.PublicKey))}.Identity()
	must.OK(t, err)
	_, err = fx.AddIdentity(ctx, "acme", again)
	must.OK(t, err)
	must.OK(t, fx.Settle(ctx))

	inPage := fx.NewSigner(ann.DN) // another key of the same name, as in a page
	inPage.Attest(sha(1), "review:code", ledger.Pass)
	fx.WantState(sha(1), ledger.Validating)
	fx.NewSigner("cn=bob,ou=people-dev,o=acme").Attest(sha(1), "review:code", ledger.Pass)
	fx.WantState(sha(1), ledger.Promotable)
}

// Who leaves does not sign any more, under the name of the member or with a key of the member.
func (s suite) TestKeysEndWithTheMembership(t *testing.T) {
	for name, test := range map[string]struct {
		change member.Change
		want   map[string]bool // whose identities are revoked, by name
	}{
		"by default": {member.Change{}, map[string]bool{"same": true, "renamed": true, "sharing": true}},
		"kept":       {member.Change{KeepKeys: true}, nil},
		"another":    {member.Change{KeepKeys: true, Also: []string{"named"}}, map[string]bool{"named": true}},
	} {
		t.Run(name, func(t *testing.T) {
			fx := s.newPeople(t)
			ctx := t.Context()
			ann, err := fx.add("ann", member.Contributor)
			must.OK(t, err)
			ids := make(map[string]string)
			add := func(name, dn string, key ed25519.PrivateKey) {
				n, err := identity.NewIdentity{Kind: identity.KeyIdentity, DN: dn,
					PEM: must.PublicPEM(t, key.Public().(ed25519.PublicKey))}.Identity()
				must.OK(t, err)
				i, err := fx.AddIdentity(ctx, "acme", n)
				must.OK(t, err)
				ids[name] = i.ID
			}
			keys := make([]ed25519.PrivateKey, 4)
			for i := range keys {
				_, keys[i], err = ed25519.GenerateKey(nil)
				must.OK(t, err)
			}
			add("same", ann.DN, keys[0])
			add("renamed", strings.ToUpper(ann.DN[:6])+ann.DN[6:], keys[1])
			add("named", "cn=ann,ou=review,o=acme", keys[2])
			add("stranger", "cn=bob,ou=review,o=acme", keys[3])
			must.OK(t, fx.RevokeIdentity(ctx, "acme", ids["same"]))
			add("sharing", "cn=laptop,ou=review,o=acme", keys[0])

			for i, id := range test.change.Also {
				test.change.Also[i] = ids[id]
			}
			test.change.Removed = new(true)
			_, err = fx.ChangeMember(ctx, "acme", ann.ID, test.change)
			must.OK(t, err)
			for name, id := range ids {
				i, err := fx.Identity(ctx, "acme", id)
				must.OK(t, err)
				if want := test.want[name] || name == "same"; (i.RevokedAt != 0) != want {
					t.Errorf("%s is revoked: %t, want %t", name, i.RevokedAt != 0, want)
				}
			}
		})
	}
}

func (s suite) TestKeysDoNotEndWithoutTheMembership(t *testing.T) {
	fx := s.newPeople(t)
	ann, err := fx.add("ann", member.Contributor)
	must.OK(t, err)
	for _, c := range []member.Change{{KeepKeys: true}, {Also: []string{"idn_x"}},
		{Removed: new(true), Also: make([]string, 101)}} {
		_, err := fx.ChangeMember(t.Context(), "acme", ann.ID, c)
		storetest.WantCode(t, err, ledger.CodeInvalidField)
	}
	_, err = fx.ChangeMember(t.Context(), "acme", ann.ID, member.Change{Removed: new(true), Also: []string{"idn_x"}})
	storetest.WantCode(t, err, ledger.CodeNotFound)
	m, err := fx.Member(t.Context(), "acme", ann.ID)
	must.OK(t, err)
	if m.RemovedAt != 0 {
		t.Error("a membership has ended although an identity is unknown")
	}
}
