package access

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/oidc/oidctest"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/exchange"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// An issuers is a fixture whose org accepts the tokens of a provider.
type issuers struct {
	*fixture
	provider *oidctest.Provider
	issuer   exchange.Issuer
	hashes   byte // of API tokens
}

func (s suite) newIssuers(t *testing.T) *issuers {
	t.Helper()
	fx := &issuers{fixture: s.newFixture(t), provider: oidctest.New(t)}
	var err error
	fx.issuer, err = fx.AddIssuer(t.Context(), "acme", exchange.NewIssuer{URL: fx.provider.URL})
	must.OK(t, err)
	return fx
}

// rule creates a rule for a repository on the forge. If dn is not empty, its jobs may sign.
func (fx *issuers) rule(repository, dn string, repos ...string) exchange.Rule {
	fx.T.Helper()
	fx.Turn()
	n, err := exchange.NewRule{Name: "ci", Issuer: fx.provider.URL, RepositoryID: repository, Scope: ledger.Write,
		Repos: repos, DN: dn, Refs: []string{"main"}}.Completed()
	must.OK(fx.T, err)
	r, err := fx.CreateRule(fx.T.Context(), "acme", n)
	must.OK(fx.T, err)
	return r
}

// claims returns the claims of a token with an ID, which expires in an hour.
func (fx *issuers) claims(id string) exchange.Claims {
	fx.T.Helper()
	now := fx.Clock.Now()
	raw := fx.provider.Token(fx.provider.GitHub("x", now, map[string]any{"jti": id, "exp": now.Add(time.Hour).Unix()}))
	token := must.Get(exchange.Parse(raw))(fx.T)
	keys := must.Get(exchange.ParseKeys([]byte(fx.provider.JWKS())))(fx.T)
	c, err := token.Verify(keys)
	must.OK(fx.T, err)
	return c
}

// exchange exchanges a token with an ID for an API token, with a new hash.
func (fx *issuers) exchange(r exchange.Rule, id string) (ledger.Token, error) {
	fx.T.Helper()
	fx.Turn()
	fx.hashes++
	return fx.Exchange(fx.T.Context(), "acme", store.Exchange{Rule: r, Claims: fx.claims(id), Scope: ledger.Write},
		[32]byte{fx.hashes})
}

func (s suite) TestIssuers(t *testing.T) {
	fx := s.newIssuers(t)
	ctx := t.Context()
	pasted, err := fx.AddIssuer(ctx, "acme", exchange.NewIssuer{URL: "http://gitlab.internal", JWKS: "{}"})
	must.OK(t, err)
	_, err = fx.AddIssuer(ctx, "acme", exchange.NewIssuer{URL: fx.provider.URL})
	storetest.WantCode(t, err, ledger.CodeAlreadyExists)
	fx.Turn()

	list, err := fx.Issuers(ctx, "acme", store.Query{Limit: 10})
	must.OK(t, err)
	if want := []exchange.Issuer{fx.issuer, pasted}; !slices.Equal(list.Data, want) {
		t.Errorf("the issuers are %+v, want %+v", list.Data, want)
	}
	got, err := fx.IssuerByURL(ctx, "acme", "http://gitlab.internal")
	must.OK(t, err)
	if got != pasted || got.JWKS != "{}" || got.ID == "" || got.Org != "acme" {
		t.Errorf("got %+v, want %+v", got, pasted)
	}
	for _, missing := range [][2]string{{"acme", "http://gitlab.internal/"}, {"globex", "http://gitlab.internal"}} {
		_, err = fx.IssuerByURL(ctx, missing[0], missing[1])
		storetest.WantCode(t, err, ledger.CodeNotFound)
	}

	must.OK(t, fx.RemoveIssuer(ctx, "acme", pasted.ID))
	storetest.WantCode(t, fx.RemoveIssuer(ctx, "acme", pasted.ID), ledger.CodeNotFound)
	_, err = fx.IssuerByURL(ctx, "acme", "http://gitlab.internal")
	storetest.WantCode(t, err, ledger.CodeNotFound)
	_, err = fx.AddIssuer(ctx, "acme", exchange.NewIssuer{URL: "http://gitlab.internal", JWKS: "{}"})
	must.OK(t, err) // again
}

// An org has at most 20 issuers.
func (s suite) TestIssuerLimit(t *testing.T) {
	fx := s.newIssuers(t)
	add := func(n int) error {
		_, err := fx.AddIssuer(t.Context(), "acme", exchange.NewIssuer{URL: "https://x/" + strings.Repeat("x", n)})
		return err
	}
	for n := range exchange.MaxIssuers - 1 {
		must.OK(t, add(n))
	}
	storetest.WantCode(t, add(100), ledger.CodeLimitReached)
	must.OK(t, fx.RemoveIssuer(t.Context(), "acme", fx.issuer.ID))
	must.OK(t, add(100))
}

func (s suite) TestExchangeRules(t *testing.T) {
	fx := s.newIssuers(t)
	ctx := t.Context()
	_, err := fx.CreateRepo(ctx, "acme", ledger.NewRepo{Name: "web"}, "host")
	must.OK(t, err)
	first := fx.rule("1234", "cn=api,ou=ci-build,o=acme", "api", "web", "API")
	second := fx.rule("1234", "", "web")
	other := fx.rule("5678", "", "web")
	if !slices.Equal(first.Repos, []string{"api", "web"}) || first.DN == "" || first.Org != "acme" ||
		first.Issuer != fx.provider.URL || len(first.Events) != 4 || first.Scope != ledger.Write {
		t.Errorf("the rule is %+v", first)
	}

	ids := func(rules []exchange.Rule) (list []string) {
		for _, r := range rules {
			list = append(list, r.ID)
		}
		return list
	}
	list, err := fx.Rules(ctx, "acme", store.Query{Limit: 10})
	must.OK(t, err)
	if got := ids(list.Data); !slices.Equal(got, []string{first.ID, second.ID, other.ID}) {
		t.Errorf("the rules are %v", got)
	}
	rules, err := fx.RulesFor(ctx, fx.issuer, "1234")
	must.OK(t, err)
	if got := ids(rules); !slices.Equal(got, []string{first.ID, second.ID}) {
		t.Errorf("the rules of the repository 1234 are %v", got)
	}

	must.OK(t, fx.RemoveRule(ctx, "acme", first.ID))
	storetest.WantCode(t, fx.RemoveRule(ctx, "acme", first.ID), ledger.CodeNotFound)
	storetest.WantCode(t, fx.RemoveRule(ctx, "acme", "rul_none"), ledger.CodeNotFound)
	rules, err = fx.RulesFor(ctx, fx.issuer, "1234")
	must.OK(t, err)
	if got := ids(rules); !slices.Equal(got, []string{second.ID}) {
		t.Errorf("after the first was removed, the rules are %v", got)
	}
}

// A rule is about what the org has.
func (s suite) TestRulesAboutNothing(t *testing.T) {
	fx := s.newIssuers(t)
	for code, change := range map[ledger.Code]func(*exchange.NewRule){
		ledger.CodeInvalidField: func(r *exchange.NewRule) { r.Issuer = "https://gitlab.com" },
		ledger.CodeNotFound:     func(r *exchange.NewRule) { r.Repos = []string{"api", "none"} },
	} {
		n, err := exchange.NewRule{Name: "ci", Issuer: fx.provider.URL, RepositoryID: "1", Scope: ledger.Read,
			Repos: []string{"api"}}.Completed()
		must.OK(t, err)
		change(&n)
		_, err = fx.CreateRule(t.Context(), "acme", n)
		storetest.WantCode(t, err, code)
	}
	list, err := fx.Rules(t.Context(), "acme", store.Query{Limit: 10})
	must.OK(t, err)
	if len(list.Data) > 0 {
		t.Errorf("the rules are %+v", list.Data)
	}
}

// For a repository on the forge, an org has at most 20 rules.
func (s suite) TestExchangeRuleLimit(t *testing.T) {
	fx := s.newIssuers(t)
	var last exchange.Rule
	for range exchange.MaxMatched {
		last = fx.rule("1234", "", "api")
	}
	n := last.NewRule
	_, err := fx.CreateRule(t.Context(), "acme", n)
	storetest.WantCode(t, err, ledger.CodeLimitReached)
	n.RepositoryID = "5678"
	_, err = fx.CreateRule(t.Context(), "acme", n)
	must.OK(t, err)
	must.OK(t, fx.RemoveRule(t.Context(), "acme", last.ID))
	n.RepositoryID = "1234"
	_, err = fx.CreateRule(t.Context(), "acme", n)
	must.OK(t, err)
}

// An exchanged token has what its rule gives, and ends with it.
func (s suite) TestExchange(t *testing.T) {
	fx := s.newIssuers(t)
	ctx := t.Context()
	r := fx.rule("1234", "", "api")
	token, err := fx.exchange(r, "1")
	must.OK(t, err)
	if token.Rule != r.ID || !slices.Equal(token.Repos, []string{"api"}) || token.DN != "" || token.Name != "ci" ||
		token.Scope != ledger.Write || token.ExpiresAt != fx.Now().Add(15*time.Minute) {
		t.Errorf("the token is %+v", token)
	}
	if _, err := fx.exchange(r, "1"); err != nil {
		t.Errorf("without signing, a token of the issuer counts again: %v", err)
	}

	name := "renamed"
	_, err = fx.ChangeRepo(ctx, "acme", "api", ledger.RepoChange{Name: &name})
	must.OK(t, err)
	got, err := fx.TokenByHash(ctx, [32]byte{1})
	must.OK(t, err)
	if !slices.Equal(got.Repos, []string{"renamed"}) || got.RevokedAt != 0 {
		t.Errorf("after the repo was renamed, the token is %+v", got)
	}

	must.OK(t, fx.RemoveRule(ctx, "acme", r.ID))
	got, err = fx.TokenByHash(ctx, [32]byte{1})
	must.OK(t, err)
	if got.RevokedAt == 0 {
		t.Errorf("after its rule was removed, the token is %+v", got)
	}
	_, err = fx.exchange(r, "2")
	storetest.WantCode(t, err, ledger.CodeNotFound)
}

// The tokens of an issuer end with it; those of others, and of no rule, do not.
func (s suite) TestTokensEndWithTheirIssuer(t *testing.T) {
	fx := s.newIssuers(t)
	ctx := t.Context()
	_, err := fx.exchange(fx.rule("1234", "", "api"), "1")
	must.OK(t, err)
	_, err = fx.CreateToken(ctx, "acme", ledger.NewToken{Name: "me", Scope: ledger.Read}, [32]byte{100})
	must.OK(t, err)
	other, err := fx.AddIssuer(ctx, "acme", exchange.NewIssuer{URL: "https://gitlab.com"})
	must.OK(t, err)

	must.OK(t, fx.RemoveIssuer(ctx, "acme", other.ID))
	if got, err := fx.TokenByHash(ctx, [32]byte{1}); err != nil || got.RevokedAt != 0 {
		t.Errorf("after another issuer was removed, the token is %+v, %v", got, err)
	}
	must.OK(t, fx.RemoveIssuer(ctx, "acme", fx.issuer.ID))
	if got, err := fx.TokenByHash(ctx, [32]byte{1}); err != nil || got.RevokedAt == 0 {
		t.Errorf("after its issuer was removed, the token is %+v, %v", got, err)
	}
	if got, err := fx.TokenByHash(ctx, [32]byte{100}); err != nil || got.RevokedAt != 0 {
		t.Errorf("a token without a rule is %+v, %v", got, err)
	}
	list, err := fx.Rules(ctx, "acme", store.Query{Limit: 10})
	must.OK(t, err)
	if len(list.Data) > 0 {
		t.Errorf("the rules are %+v", list.Data)
	}
}

// A token with which a job may sign counts once, also if it is presented several times at once.
func (s suite) TestTokensAreUsedOnce(t *testing.T) {
	fx := s.newIssuers(t)
	r := fx.rule("1234", "cn=api,ou=ci-build,o=acme", "api")
	claims := fx.claims("1")
	errs := make([]error, 8)
	var all sync.WaitGroup
	for i := range errs {
		replica := fx.Store
		if fx.Other != nil && i%2 == 1 {
			replica = fx.Other
		}
		all.Go(func() {
			_, errs[i] = replica.Exchange(t.Context(), "acme",
				store.Exchange{Rule: r, Claims: claims, Scope: ledger.Write}, [32]byte{100, byte(i)})
		})
	}
	all.Wait()
	succeeded := 0
	for _, err := range errs {
		if err == nil {
			succeeded++
		} else {
			storetest.WantCode(t, err, ledger.CodeTokenUsed)
		}
	}
	if succeeded != 1 {
		t.Errorf("%d exchanges succeeded, want 1", succeeded)
	}

	token, err := fx.exchange(r, "2")
	must.OK(t, err)
	if token.DN != "cn=api,ou=ci-build,o=acme" {
		t.Errorf("the token is %+v", token)
	}
	_, err = fx.exchange(r, "")
	storetest.WantCode(t, err, ledger.CodeInvalidToken)
}

// Exchanged tokens are deleted an hour after they have expired. A used token is refused at any time.
func (s suite) TestExchangedTokensArePruned(t *testing.T) {
	fx := s.newIssuers(t)
	ctx := t.Context()
	r := fx.rule("1234", "cn=api,ou=ci-build,o=acme", "api")
	_, err := fx.exchange(r, "1")
	must.OK(t, err)
	_, err = fx.CreateToken(ctx, "acme",
		ledger.NewToken{Name: "me", Scope: ledger.Read, ExpiresAt: fx.Now().Add(time.Minute)}, [32]byte{100})
	must.OK(t, err)
	claims := fx.claims("1")
	use := func() error {
		_, err := fx.Exchange(ctx, "acme", store.Exchange{Rule: r, Claims: claims, Scope: ledger.Read}, [32]byte{101})
		return err
	}

	fx.Clock.Advance(time.Hour + time.Minute - time.Millisecond)
	must.OK(t, fx.Prune(ctx))
	storetest.WantCode(t, use(), ledger.CodeTokenUsed)
	fx.Clock.Advance(14 * time.Minute)
	must.OK(t, fx.Prune(ctx))
	if _, err = fx.TokenByHash(ctx, [32]byte{1}); err != nil {
		t.Errorf("a token that expired less than an hour ago: %v", err)
	}
	fx.Clock.Advance(time.Millisecond)
	must.OK(t, fx.Prune(ctx))
	_, err = fx.TokenByHash(ctx, [32]byte{1})
	storetest.WantCode(t, err, ledger.CodeNotFound)
	if _, err = fx.TokenByHash(ctx, [32]byte{100}); err != nil {
		t.Errorf("an expired token without a rule: %v", err)
	}
	storetest.WantCode(t, use(), ledger.CodeTokenExpired)
}

// An org that is restored does not exchange tokens.
func (s suite) TestIssuersEndWithTheirOrg(t *testing.T) {
	fx := s.newIssuers(t)
	ctx := t.Context()
	r := fx.rule("1234", "", "api")
	must.OK(t, fx.DeleteOrg(ctx, "acme"))
	deleted, err := fx.DeletedOrgs(ctx, store.Query{Limit: 10})
	must.OK(t, err)
	name := "acme"
	_, err = fx.ChangeOrg(ctx, deleted.Data[0].Name, ledger.OrgChange{Name: &name})
	must.OK(t, err)
	_, err = fx.IssuerByURL(ctx, "acme", fx.provider.URL)
	storetest.WantCode(t, err, ledger.CodeNotFound)
	_, err = fx.exchange(r, "1")
	storetest.WantCode(t, err, ledger.CodeNotFound)
}
