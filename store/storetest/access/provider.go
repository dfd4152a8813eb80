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

// orgs creates orgs.
func (fx *people) orgs(names ...string) {
	fx.T.Helper()
	for _, name := range names {
		_, err := fx.CreateOrg(fx.T.Context(), name)
		must.OK(fx.T, err)
	}
}

// reopen opens the database again with providers.
func (fx *people) reopen(p member.Providers) {
	fx.T.Helper()
	fx.CloseAll()
	fx.Other = nil
	fx.Open(store.Options{Providers: p})
}

// wantOffers checks to which orgs an account can sign in. A + is before those that it must agree to join.
func (fx *people) wantOffers(a member.Account, want ...string) {
	fx.T.Helper()
	fx.Turn()
	offers, err := fx.Offers(fx.T.Context(), a)
	must.OK(fx.T, err)
	var got []string
	for _, o := range offers {
		if o.Joins {
			o.Org = "+" + o.Org
		}
		got = append(got, o.Org)
	}
	if !slices.Equal(got, want) {
		fx.T.Errorf("%s: the orgs are %v, want %v", a.Subject, got, want)
	}
}

// wantMembers checks the subjects of the members and former members of an org.
func (fx *people) wantMembers(org string, want ...string) {
	fx.T.Helper()
	list, err := fx.Members(fx.T.Context(), org, store.Query{Limit: 10})
	must.OK(fx.T, err)
	var got []string
	for _, m := range list.Data {
		got = append(got, m.Subject)
	}
	if !slices.Equal(got, want) {
		fx.T.Errorf("the members of %s are %v, want %v", org, got, want)
	}
}

// The orgs of an account are those that admit it.
func (s suite) TestOrgsOfAnAccount(t *testing.T) {
	fx := s.newPeople(t)
	ctx := t.Context()
	fx.orgs("umbrella", "globex", "hooli")
	for _, org := range []string{"umbrella", "globex"} {
		_, err := fx.ruleIn(org, "dev", member.Reader)
		must.OK(t, err)
	}

	ann, err := fx.add("ann", member.Reader)
	must.OK(t, err)
	fx.wantOffers(account("ann", "dev"), "+acme", "+globex", "+umbrella") // none has seen her yet
	fx.signedIn(account("ann"))
	fx.wantOffers(account("ann", "dev"), "acme", "+globex", "+umbrella")
	fx.wantOffers(account("ann"), "acme")
	fx.wantOffers(account("bob", "dev"), "+globex", "+umbrella")
	fx.wantOffers(account("bob"))
	another := account("ann", "dev")
	another.Issuer = "https://other.example"
	fx.wantOffers(another)
	_, err = fx.ChangeMember(ctx, "acme", ann.ID, member.Change{Removed: new(true)})
	must.OK(t, err)
	fx.wantOffers(account("ann"))
	must.OK(t, fx.DeleteOrg(ctx, "globex"))
	fx.wantOffers(account("ann", "dev"), "umbrella")
}

// A rule of a second org makes an account a member only after its person has agreed. Until then, the
// org learns nothing.
func (s suite) TestASecondOrgNeedsConsent(t *testing.T) {
	fx := s.newPeople(t)
	fx.orgs("globex", "umbrella")
	fx.rule("dev", member.Contributor)
	a := account("ann", "dev", "everyone")
	fx.wantOffers(a, "acme")
	fx.signedIn(a)
	_, err := fx.ruleIn("globex", "everyone", member.Admin)
	must.OK(t, err)
	fx.wantOffers(a, "acme", "+globex")

	_, _, err = fx.signInTo("globex", a)
	storetest.WantCode(t, err, ledger.CodeForbidden)
	a.Consent = "umbrella"
	_, _, err = fx.signInTo("globex", a)
	storetest.WantCode(t, err, ledger.CodeForbidden)
	fx.wantMembers("globex")

	a.Consent = "globex"
	_, _, err = fx.signInTo("globex", a)
	must.OK(t, err)
	fx.wantMembers("globex", "ann")
	a.Consent = ""
	fx.wantOffers(a, "acme", "globex")
	_, _, err = fx.signInTo("globex", a)
	must.OK(t, err)

	// An org that adds the account by its subject learns no more.
	_, err = fx.AddMember(t.Context(), "umbrella", member.NewMember{Issuer: a.Issuer, Subject: a.Subject,
		DN: "cn=ann,ou=people-dev,o=umbrella", Role: member.Reader})
	must.OK(t, err)
	fx.wantOffers(a, "acme", "globex", "+umbrella")
	_, _, err = fx.signInTo("umbrella", a)
	storetest.WantCode(t, err, ledger.CodeForbidden)
	a.Consent = "umbrella"
	_, _, err = fx.signInTo("umbrella", a)
	must.OK(t, err)
}

// If rules of several orgs admit an account that is a member of none, the person chooses.
func (s suite) TestAFirstOrgOfSeveralNeedsConsent(t *testing.T) {
	fx := s.newPeople(t)
	fx.orgs("globex")
	fx.rule("dev", member.Contributor)
	_, err := fx.ruleIn("globex", "everyone", member.Admin)
	must.OK(t, err)
	a := account("ann", "dev", "everyone")
	for _, org := range []string{"acme", "globex"} {
		_, _, err = fx.signInTo(org, a)
		storetest.WantCode(t, err, ledger.CodeForbidden)
	}
	a.Consent = "acme"
	_, _, err = fx.signInTo("acme", a)
	must.OK(t, err)
	fx.wantMembers("acme", "ann")
	fx.wantMembers("globex")
}

// A rule of an earlier release about a protocol claim, such as aud, admits nobody, and the list says so.
func (s suite) TestProtocolClaimsAdmitNobody(t *testing.T) {
	fx := s.newPeople(t)
	rule, err := fx.CreateMemberRule(t.Context(), "acme", member.NewRule{Issuer: storetest.Provider, Claim: "aud",
		Value: "ledgerd", Role: member.Admin, DN: "cn={login},ou=people-dev,o=acme"}) // the API refuses it
	must.OK(t, err)
	a := account("ann")
	a.Claims["aud"] = []string{"ledgerd"}
	fx.wantOffers(a)
	_, _, err = fx.signIn(a)
	storetest.WantCode(t, err, ledger.CodeForbidden)
	fx.wantMembers("acme")
	list, err := fx.MemberRules(t.Context(), "acme", store.Query{Limit: 10})
	must.OK(t, err)
	if rule.Ineffective == "" || !slices.Equal(list.Data, []member.Rule{rule}) {
		t.Errorf("the rules are %+v", list.Data)
	}
}

// Only the orgs that the host names may have members and rules of a provider, and sign them in.
func (s suite) TestTheHostSaysWhichOrgsUseAProvider(t *testing.T) {
	fx := s.newPeople(t)
	ctx := t.Context()
	fx.orgs("globex", "umbrella")
	_, err := fx.ruleIn("globex", "dev", member.Reader)
	must.OK(t, err)
	dn := "cn=ann,ou=people-dev,o=globex"
	ann, err := fx.AddMember(ctx, "globex",
		member.NewMember{Issuer: storetest.Provider, Subject: "ann", DN: dn, Role: member.Reader})
	must.OK(t, err)
	former, err := fx.AddMember(ctx, "globex", member.NewMember{Issuer: storetest.Provider, Subject: "eve",
		DN: "cn=eve,ou=people-dev,o=globex", Role: member.Reader})
	must.OK(t, err)
	_, err = fx.ChangeMember(ctx, "globex", former.ID, member.Change{Removed: new(true)})
	must.OK(t, err)
	_, session, err := fx.signInTo("globex", account("ann"))
	must.OK(t, err)
	fx.rule("team", member.Reader)
	_, other := fx.signedIn(account("carl", "team"))
	_, err = fx.ruleIn("umbrella", "ops", member.Reader)
	must.OK(t, err)
	_, last, err := fx.signInTo("umbrella", account("dan", "ops"))
	must.OK(t, err)

	fx.reopen(member.Providers{storetest.Provider: {"acme"}})
	must.OK(t, fx.EndSignInsOfProviders(ctx))
	if fx.isCurrent(session) || !fx.isCurrent(other) || fx.isCurrent(last) {
		t.Error("the sign-ins that ended are not those of globex and umbrella")
	}
	fx.wantOffers(account("ann", "team"), "+acme")
	fx.wantOffers(account("bob", "dev", "team"), "acme")
	for _, a := range []member.Account{account("ann"), account("bob", "dev")} {
		_, _, err := fx.signInTo("globex", a)
		storetest.WantCode(t, err, ledger.CodeForbidden)
	}
	_, err = fx.ruleIn("globex", "ops", member.Reader)
	wantField(t, err, "issuer")
	_, err = fx.AddMember(ctx, "globex", member.NewMember{Issuer: storetest.Provider, Subject: "new",
		DN: "cn=new,ou=people-dev,o=globex", Role: member.Reader})
	wantField(t, err, "issuer")
	_, err = fx.ChangeMember(ctx, "globex", former.ID, member.Change{Removed: new(false)})
	wantField(t, err, "issuer")
	_, err = fx.ChangeMember(ctx, "globex", ann.ID, member.Change{Role: new(member.Admin)}) // she stays a member
	must.OK(t, err)

	fx.reopen(member.Providers{storetest.Provider: {"acme", "globex"}})
	_, _, err = fx.signInTo("globex", account("ann"))
	must.OK(t, err)
}

// wantField checks that an error is about an invalid field.
func wantField(t testing.TB, err error, field string) {
	t.Helper()
	storetest.WantCode(t, err, ledger.CodeInvalidField)
	if e := err.(*ledger.Error); len(e.Fields) != 1 || e.Fields[0].Field != field {
		t.Fatalf("got error %v, want one about %s", err, field)
	}
}
