package states

import (
	"crypto/ed25519"
	"crypto/sha1" //nolint:gosec // git's object ids
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// named adds a key whose signer commits name in several ways.
func (fx *fixture) named(dn string, emails []string, logins ...string) (*storetest.Signer, identity.Identity) {
	fx.T.Helper()
	fx.Turn()
	public, key, err := ed25519.GenerateKey(nil)
	must.OK(fx.T, err)
	n, err := identity.NewIdentity{Kind: identity.KeyIdentity, PEM: must.PublicPEM(fx.T, public), DN: dn, Emails: emails,
		Logins: logins}.Identity()
	must.OK(fx.T, err)
	added, err := fx.AddIdentity(fx.T.Context(), "acme", n)
	must.OK(fx.T, err)
	return fx.SignerOf(key, dn), added
}

// proveBy registers a commit with its object, which names an author, a committer and, in its
// message, co-authors. It returns its id.
func (fx *fixture) proveBy(author, committer, message string) string {
	fx.T.Helper()
	fx.Turn()
	at := fx.Clock.Tick()
	raw := fmt.Appendf(nil, "tree %040x\nauthor %s 1780000000 +0000\ncommitter %s 1780000000 +0000\n\nCommit %d\n\n%s\n",
		at, author, committer, at, message)
	sum := sha1.Sum(fmt.Appendf(nil, "commit %d\x00%s", len(raw), raw)) //nolint:gosec // git's object ids
	id := hex.EncodeToString(sum[:])
	_, _, err := fx.Register(fx.T.Context(), "acme", "api", id, ledger.Registration{Object: raw})
	must.OK(fx.T, err)
	return id
}

// Eve reviews commits that name her in the ways of git and of the forges, under the default
// contract.
func (s suite) TestAuthorsDoNotReviewThemselvesUnderAnyName(t *testing.T) {
	fx := s.newFixture(t)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	eve, _ := fx.named("cn=reviewer-7,ou=review,o=acme", []string{"e@acme.example", "eve+review@acme.example"},
		"github:eve", "gitlab:Eve", "git.acme.example:eve")

	const dora = "Dora <dora@acme.example>"
	for _, author := range []string{
		"E <eve@acme.example>", "E <EVE@Acme.Example>", "E <eve+work@acme.example>", "E <e@acme.example>",
		"E <123+eve@users.noreply.github.com>", "E <eve@users.noreply.github.com>",
		"E <123-eve@users.noreply.gitlab.com>", "E <123-eve@users.noreply.git.acme.example>",
		"E <eve@noreply.git.acme.example>",
	} {
		for role, id := range map[string]string{
			"author":    fx.proveBy(author, dora, ""),
			"committer": fx.proveBy(dora, author, ""),
			"co-author": fx.proveBy(dora, dora, "Co-authored-by: A <a@acme.example>, "+author),
		} {
			ci.Attest(id, "test:go", ledger.Pass)
			eve.Attest(id, "review:code", ledger.Pass)
			if c := fx.ReadCommit(id); c.State != ledger.Attested {
				t.Errorf("%s as the %s: the commit is %s", author, role, c.State)
			}
		}
	}

	for _, line := range []string{
		"Co-authored-by: Reviewer-7, Bob B <bob@acme.example>", "Co-authored-by: Reviewer-7 & Bob <bob@acme.example>",
		"Co-authored-by: Bob <bob@acme.example> and reviewer-7", "Co-authored-by: X e@acme.example",
		"Co-authored-by: X (e@acme.example)", "Co-authored-by: X [e@acme.example]",
		"Co-authored-by: e@acme.example ann@x.example", "Co-authored-by: X <bob@acme.example, e@acme.example>",
		`Co-authored-by: "X" <"e@acme.example">`, "Co-authored-by: @eve", "Co-authored-by: Reviewer-7, E",
		"* Co-authored-by: E <e@acme.example>", "> Co-authored-by: E <e@acme.example>",
		"Co authored by: E <e@acme.example>",
	} {
		id := fx.proveBy(dora, dora, line)
		ci.Attest(id, "test:go", ledger.Pass)
		eve.Attest(id, "review:code", ledger.Pass)
		if c := fx.ReadCommit(id); c.State != ledger.Attested {
			t.Errorf("%s: the commit is %s", line, c.State)
		}
	}

	other := fx.proveBy(dora, dora, "")
	ci.Attest(other, "test:go", ledger.Pass)
	eve.Attest(other, "review:code", ledger.Pass)
	fx.WantState(other, ledger.Promotable)

	// Names after one that names nobody are compared, too.
	zoe, _ := fx.named("cn=-,ou=review,o=acme", []string{"zoe@acme.example"})
	zoes := fx.proveBy("Zoe <zoe@acme.example>", dora, "")
	ci.Attest(zoes, "test:go", ledger.Pass)
	zoe.Attest(zoes, "review:code", ledger.Pass)
	fx.WantState(zoes, ledger.Attested)
}

// With exclude_author "known", a review counts once the org knows all authors, and no longer if it
// does not know one any more.
func (s suite) TestReviewsCountOnceTheAuthorsAreKnown(t *testing.T) {
	fx := s.newFixture(t)
	c, err := policy.Parse([]byte(`{"requirements":[
		{"state":"PROMOTABLE","predicate":"review:*","exclude_author":"known"}]}`))
	must.OK(t, err)
	must.Get(fx.SetPolicy(t.Context(), "acme", "api", c, 0, "host"))(t)
	rita := fx.NewSigner("cn=rita,ou=review,o=acme")
	const github = "GitHub <noreply@github.com>"

	eve := fx.proveBy("Eve <eve@home.example>", github, "")
	bot := fx.proveBy("dependabot[bot] <49699333+dependabot[bot]@users.noreply.github.com>", github, "")
	unnamed := fx.proveBy("- <->", github, "")
	forge := fx.proveBy(github, github, "")
	claimed := sha(7)
	_, _, err = fx.Register(t.Context(), "acme", "api", claimed, ledger.Registration{
		Author: ledger.Author{Name: "eve", Email: "eve@acme.example"}})
	must.OK(t, err)
	fx.named("cn=dora,ou=dev,o=acme", nil)
	const dora, co = "Dora <dora@acme.example>", "Co-authored-by: "
	all := []string{eve, bot, unnamed, forge, claimed, fx.proveBy(dora, " <>", ""), fx.proveBy(" <>", dora, ""),
		fx.proveBy(dora, dora, co+"<>"), fx.proveBy(dora, dora, co+github), fx.proveBy(dora, github, co+"X, Dora D <d@x>")}
	for _, id := range all {
		rita.Attest(id, "review:code", ledger.Pass)
		fx.WantState(id, ledger.Attested)
	}
	if reason := fx.ReadCommit(eve).Requirements[0].Reason; !strings.Contains(reason, `"Eve <eve@home.example>"`) {
		t.Errorf("the reason does not name the author: %s", reason)
	}
	facts, err := fx.LintFacts(t.Context(), "acme", "api", c)
	must.OK(t, err)
	if facts.UnknownAuthors != len(all) || facts.NewestCommits != len(all) {
		t.Errorf("lint counts %d commits of %d, want all of %d", facts.UnknownAuthors, facts.NewestCommits, len(all))
	}

	_, added := fx.named("cn=e7,ou=dev,o=acme", []string{"eve@acme.example", "eve@home.example"})
	fx.named("cn=bot,ou=build,o=acme", nil, "github:dependabot[bot]")
	must.OK(t, fx.Settle(t.Context()))
	fx.WantState(eve, ledger.Promotable)
	fx.WantState(bot, ledger.Promotable)
	for _, id := range append(all[5:], unnamed, forge, claimed) {
		fx.WantState(id, ledger.Attested)
	}

	fx.Turn()
	_, err = fx.ChangeIdentity(t.Context(), "acme", added.ID, identity.Change{Emails: new([]string{"eve@acme.example"})})
	must.OK(t, err)
	must.OK(t, fx.Settle(t.Context()))
	fx.WantState(eve, ledger.Attested)
	fx.Turn()
	_, err = fx.ChangeIdentity(t.Context(), "acme", added.ID, identity.Change{Emails: new([]string{"eve@home.example"})})
	must.OK(t, err)
	must.OK(t, fx.RevokeIdentity(t.Context(), "acme", added.ID)) // she is still known
	must.OK(t, fx.Settle(t.Context()))
	fx.WantState(eve, ledger.Promotable)
}

// The e-mail addresses and logins of an identity are stored, and logged if they say more than before.
func (s suite) TestNamesOfIdentitiesAreStored(t *testing.T) {
	fx := s.newFixture(t)
	emails, logins := []string{"eve@acme.example", "eve@home.example"}, []string{"github:eve", "git.acme.example:eve"}
	_, added := fx.named("cn=eve,ou=dev,o=acme", emails, logins...)
	want := func(i identity.Identity, err error, email string, emails, logins []string) {
		t.Helper()
		must.OK(t, err)
		if i.Email != email || !slices.Equal(i.Emails, emails) || !slices.Equal(i.Logins, logins) {
			t.Errorf("%q, %q, %q; want %q, %q, %q", i.Email, i.Emails, i.Logins, email, emails, logins)
		}
		events := storetest.EventsOf[ledger.IdentityEvent](fx.Fixture)
		if e := events[len(events)-1]; e.Email != email || !slices.Equal(e.Emails, emails) ||
			!slices.Equal(e.Logins, logins) {
			t.Errorf("logged as %+v", e)
		}
		stored, err := fx.Identity(t.Context(), "acme", i.ID)
		must.OK(t, err)
		if !slices.Equal(stored.AuthorNames(), i.AuthorNames()) {
			t.Errorf("stored as %+v", stored)
		}
	}
	change := func(c identity.Change) (identity.Identity, error) {
		fx.Turn()
		return fx.ChangeIdentity(t.Context(), "acme", added.ID, c)
	}

	want(added, nil, emails[0], emails, logins)
	changed, err := change(identity.Change{Email: new("e@acme.example")})
	want(changed, err, "e@acme.example", []string{"e@acme.example", emails[1]}, logins)
	changed, err = change(identity.Change{Emails: new([]string{emails[1]}), Logins: new(logins[:1])})
	want(changed, err, emails[1], nil, logins[:1])
	changed, err = change(identity.Change{Emails: new([]string{}), Logins: new([]string{})})
	want(changed, err, "", nil, nil)
}

// A name that two identities of a person have stays the person's until neither has it, whether
// they are revoked or not, and whether their DNs differ in case and blanks.
func (s suite) TestNamesStayWhileAnyIdentityHasThem(t *testing.T) {
	emails, logins := []string{"ria@home.example"}, []string{"github:ria"}
	none := identity.Change{Emails: new([]string{}), Logins: new([]string{})}
	for name, test := range map[string]struct {
		dn    string // of the second identity
		first bool   // the first identity is the reviewer's
	}{
		"the same DN":                       {"cn=ria,ou=review,o=acme", true},
		"the same DN, other signer":         {"cn=ria,ou=review,o=acme", false},
		"a DN in another case":              {"cn=Ria,ou=review,o=acme", true},
		"a DN in another case, its reviews": {"cn=Ria,ou=review,o=acme", false},
	} {
		t.Run(name, func(t *testing.T) {
			fx := s.newFixture(t)
			ci := fx.NewSigner("cn=ci,ou=build,o=acme")
			reviewer, a := fx.named("cn=ria,ou=review,o=acme", emails, logins...)
			other, b := fx.named(test.dn, emails, logins...)
			if !test.first {
				reviewer = other
			}
			id := fx.proveBy("Q <9+ria@users.noreply.github.com>", "R <ria@home.example>", "")
			login := fx.proveBy("Q <9+ria@users.noreply.github.com>", "Q <q@acme.example>", "")
			address := fx.proveBy("R <ria@home.example>", "Q <q@acme.example>", "")
			for _, id := range []string{id, login, address} {
				ci.Attest(id, "test:go", ledger.Pass)
				reviewer.Attest(id, "review:code", ledger.Pass)
			}
			want := func(state ledger.State) {
				t.Helper()
				must.OK(t, fx.Settle(t.Context()))
				for _, id := range []string{id, login, address} {
					fx.WantState(id, state)
				}
			}
			change := func(id string, c identity.Change) {
				t.Helper()
				fx.Turn()
				_, err := fx.ChangeIdentity(t.Context(), "acme", id, c)
				must.OK(t, err)
			}

			want(ledger.Attested)
			change(a.ID, none)
			want(ledger.Attested)
			change(a.ID, identity.Change{Emails: &emails, Logins: &logins})
			must.OK(t, fx.RevokeIdentity(t.Context(), "acme", b.ID))
			change(a.ID, none)
			want(ledger.Attested) // the revoked identity has the names
		})
	}

	fx := s.newFixture(t)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	ria, a := fx.named("cn=ria,ou=review,o=acme", emails, logins...)
	id := fx.proveBy("Q <9+ria@users.noreply.github.com>", "Q <q@acme.example>", "")
	ci.Attest(id, "test:go", ledger.Pass)
	ria.Attest(id, "review:code", ledger.Pass)
	fx.WantState(id, ledger.Attested)
	_, err := fx.ChangeIdentity(t.Context(), "acme", a.ID, none)
	must.OK(t, err)
	must.OK(t, fx.Settle(t.Context()))
	fx.WantState(id, ledger.Promotable)
}
