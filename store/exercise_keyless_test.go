package store_test

import (
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/oidc/oidctest"
	"github.com/ledgerd/ledgerd/internal/sigstoretest"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/ca"
	"github.com/ledgerd/ledgerd/ledger/exchange"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/ledger/passkey"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// trustedRoots sets, lists and removes a trusted root, and adds an entry that names it.
func (e *exerciser) trustedRoots() {
	ctx := e.t.Context()
	document := sigstoretest.File(e.t, sigstoretest.PublicGood)
	for _, text := range [][]byte{document, nil, document} { // it is removed, and set again
		e.ok(e.SetTrustedRoot(ctx, "acme", "public-good", text))
	}
	e.ok(e.TrustedRoot(ctx, "acme", "public-good", 1))

	entry := ledger.SigstoreEntry{TrustedRoot: "public-good", Issuer: "https://issuer.example", Subject: "a@b.example"}
	n, err := identity.NewIdentity{Kind: identity.SigstoreIdentity, DN: "cn=release,ou=build,o=acme", Sigstore: &entry,
		May: identity.Predicates{"build:*"}, Logins: []string{"github:release"}}.Identity()
	must.OK(e.t, err)
	e.ok(e.AddIdentity(ctx, "acme", n))
	_, _, err = e.Keyring(ctx, "acme")
	must.OK(e.t, err)
}

// exchanges exchanges tokens of an issuer, and removes the issuer with its rules.
func (e *exerciser) exchanges() {
	ctx, provider := e.t.Context(), oidctest.New(e.t)
	for _, url := range []string{provider.URL, "https://other.example"} {
		e.ok(e.AddIssuer(ctx, "acme", exchange.NewIssuer{URL: url}))
	}
	issuer, err := e.IssuerByURL(ctx, "acme", provider.URL)
	must.OK(e.t, err)

	var rules []exchange.Rule
	for range 3 {
		n, err := exchange.NewRule{Name: "ci", Issuer: provider.URL, RepositoryID: "1234", Scope: ledger.Write,
			Repos: []string{"api"}, DN: "cn=api,ou=ci-build,o=acme", Refs: []string{"main"}}.Completed()
		must.OK(e.t, err)
		r, err := e.CreateRule(ctx, "acme", n)
		must.OK(e.t, err)
		rules = append(rules, r)
	}
	e.ok(e.RulesFor(ctx, issuer, "1234"))

	token, err := exchange.Parse(provider.Token(provider.GitHub("x", e.now, map[string]any{"jti": "one"})))
	must.OK(e.t, err)
	keys := must.Get(exchange.ParseKeys([]byte(provider.JWKS())))(e.t)
	claims, err := token.Verify(keys)
	must.OK(e.t, err)
	e.ok(e.Exchange(ctx, "acme", store.Exchange{Rule: rules[0], Claims: claims, Scope: ledger.Read}, [32]byte{77}))
	e.ok(e.TokenByHash(ctx, [32]byte{77}))
	e.authority(rules[1], provider)
	e.reviews()

	must.OK(e.t, e.RemoveRule(ctx, "acme", rules[2].ID))
	must.OK(e.t, e.RemoveIssuer(ctx, "acme", issuer.ID))
}

// authority creates the CA of CI jobs, logs a certificate of it, replaces and retires it.
func (e *exerciser) authority(rule exchange.Rule, provider *oidctest.Provider) {
	ctx := e.t.Context()
	must.OK(e.t, e.CheckNoCA(ctx, "acme", ca.Jobs))
	root, err := e.CreateCA(ctx, "acme", ca.Jobs, storetest.NewRoot(e.t, ca.Jobs, e.Now()), false)
	must.OK(e.t, err)
	e.ok(e.CA(ctx, "acme", ca.Jobs))

	token, err := exchange.Parse(provider.Token(provider.GitHub("x", e.now, map[string]any{"jti": "two"})))
	must.OK(e.t, err)
	keys := must.Get(exchange.ParseKeys([]byte(provider.JWKS())))(e.t)
	claims, err := token.Verify(keys)
	must.OK(e.t, err)
	certificate := store.Certificate{CA: root.ID, Serial: strings.Repeat("8", 32), Key: "0a",
		NotAfter: ledger.TimeOf(e.now.Add(10 * time.Minute))}
	use := store.Exchange{Rule: rule, Claims: claims, Scope: ledger.Read}
	must.OK(e.t, e.LogCertificate(ctx, "acme", certificate, use, &[32]byte{78}))

	e.ok(e.CreateCA(ctx, "acme", ca.Jobs, storetest.NewRoot(e.t, ca.Jobs, e.Now()), true))
	must.OK(e.t, e.RetireCA(ctx, "acme", ca.Jobs))
}

// reviews logs the certificate of a draft that a member has signed.
func (e *exerciser) reviews() {
	ctx := e.t.Context()
	root, err := e.CreateCA(ctx, "acme", ca.People, storetest.NewRoot(e.t, ca.People, e.Now()), false)
	must.OK(e.t, err)
	account := member.Account{Issuer: "https://idp.example", Subject: "reviewer"}
	dn := "cn=reviewer,ou=people-dev,o=acme"
	_, err = e.AddMember(ctx, "acme", member.NewMember{Issuer: account.Issuer, Subject: account.Subject, DN: dn,
		Role: member.Contributor})
	must.OK(e.t, err)
	token, err := e.SignInMember(ctx, "acme", account, [32]byte{91}, [32]byte{92}, ledger.TimeOf(e.now.Add(time.Hour)))
	must.OK(e.t, err)

	d := store.ReviewDraft{Digest: [32]byte{93}, Token: token.ID, Until: ledger.TimeOf(e.now.Add(10 * time.Minute))}
	must.OK(e.t, e.CreateReviewDraft(ctx, "acme", "api", d))
	must.OK(e.t, e.LogReview(ctx, "acme", "api", d, store.Certificate{CA: root.ID, Serial: strings.Repeat("9", 32),
		Key: "0a", DN: dn, NotAfter: d.Until}))
	e.passkeys(token.ID)
	must.OK(e.t, e.RetireCA(ctx, "acme", ca.People))
	d.Until = ledger.TimeOf(e.now.Add(-time.Minute)) // Prune deletes it
	must.OK(e.t, e.CreateReviewDraft(ctx, "acme", "api", d))
}

// passkeys enrols a passkey of a sign-in, and lists and removes it.
func (e *exerciser) passkeys(signIn string) {
	ctx := e.t.Context()
	until := ledger.TimeOf(e.now.Add(10 * time.Minute))
	must.OK(e.t, e.CreatePasskeyChallenge(ctx, "acme", signIn, []byte{1}, until))
	p, err := e.AddPasskey(ctx, "acme", signIn, []byte{1}, passkey.Passkey{Name: "Laptop", RPID: "ledger.example.com",
		CredentialID: []byte{1}, PublicKey: []byte{2}})
	must.OK(e.t, err)
	d := store.ReviewDraft{Digest: [32]byte{94}, Token: signIn, Passkey: p.ID, Until: until}
	must.OK(e.t, e.CreateReviewDraft(ctx, "acme", "api", d))
	root, err := e.CA(ctx, "acme", ca.People)
	must.OK(e.t, err)
	must.OK(e.t, e.LogReview(ctx, "acme", "api", d, store.Certificate{
		CA: root.ID, Serial: strings.Repeat("7", 32), Key: "0a", DN: p.DN, NotAfter: until,
	}))
	for _, member := range []string{"", p.Member} {
		_, err := e.Passkeys(ctx, "acme", member, store.Query{Limit: 10})
		must.OK(e.t, err)
	}

	must.OK(e.t, e.RemovePasskey(ctx, "acme", "", p.ID))
	list, err := e.Attestations(ctx, "acme", "api", store.AttestationFilter{Query: store.Query{Limit: 1}})
	must.OK(e.t, err)
	if _, err := e.Assertion(ctx, "acme", "api", list.Data[0].ID); err == nil {
		e.t.Error("a passkey has confirmed an attestation")
	}
	past := ledger.TimeOf(e.now.Add(-time.Minute)) // Prune deletes it
	must.OK(e.t, e.CreatePasskeyChallenge(ctx, "acme", signIn, []byte{2}, past))
}
