package access

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/ca"
	"github.com/ledgerd/ledgerd/ledger/exchange"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// root returns the root of a new CA for CI jobs.
func (fx *fixture) root() identity.Identity {
	fx.T.Helper()
	return storetest.NewRoot(fx.T, ca.Jobs, fx.Now())
}

// caEvents returns what the events of acme say of its CAs, as the action and the name of the CA.
func (fx *fixture) caEvents() (list []string) {
	fx.T.Helper()
	for _, e := range storetest.EventsOf[ledger.KeyEvent](fx.Fixture) {
		if e.Purpose != ledger.KeyOfCA {
			continue
		}
		cert := must.Get(x509.ParseCertificate(e.PublicKey))(fx.T)
		if e.NotAfter != ledger.TimeOf(cert.NotAfter) {
			fx.T.Errorf("the event has the end %s, the certificate %s", e.NotAfter, cert.NotAfter)
		}
		list = append(list, string(e.Action)+" "+string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
			Bytes: e.PublicKey})))
	}
	return list
}

func (s suite) TestAnOrgHasOneCAInUse(t *testing.T) {
	fx := s.newFixture(t)
	ctx := t.Context()
	_, err := fx.CA(ctx, "acme", ca.Jobs)
	storetest.WantCode(t, err, ledger.CodeNotFound)
	must.OK(t, fx.CheckNoCA(ctx, "acme", ca.Jobs))
	storetest.WantCode(t, fx.RetireCA(ctx, "acme", ca.Jobs), ledger.CodeNotFound)
	var events []string
	wantInUse := func(want identity.Identity, newEvents ...string) {
		t.Helper()
		fx.Turn()
		got, err := fx.CA(ctx, "acme", ca.Jobs)
		if err != nil || got.ID != want.ID || got.PEM != want.PEM || got.DNPattern != "ou=ci-*,o=acme" {
			t.Errorf("the CA in use is %+v, %v, want %s", got, err, want.ID)
		}
		events = append(events, newEvents...)
		if got := fx.caEvents(); !slices.Equal(got, events) {
			t.Errorf("events of CAs:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(events, "\n"))
		}
	}

	first, err := fx.CreateCA(ctx, "acme", ca.Jobs, fx.root(), false)
	must.OK(t, err)
	wantInUse(first, "added "+first.PEM)
	storetest.WantCode(t, fx.CheckNoCA(ctx, "acme", ca.Jobs), ledger.CodeAlreadyExists)
	storetest.WantCode(t, fx.CheckNoCA(ctx, "none", ca.Jobs), ledger.CodeNotFound)
	_, err = fx.CreateCA(ctx, "acme", ca.Jobs, fx.root(), false)
	storetest.WantCode(t, err, ledger.CodeAlreadyExists)
	_, err = fx.CreateCA(ctx, "acme", ca.Jobs, first, true) // with the key of the first
	storetest.WantCode(t, err, ledger.CodeAlreadyExists)
	_, err = fx.CreateCA(ctx, "none", ca.Jobs, fx.root(), false)
	storetest.WantCode(t, err, ledger.CodeNotFound)
	wantInUse(first)

	second, err := fx.CreateCA(ctx, "acme", ca.Jobs, fx.root(), true)
	must.OK(t, err)
	wantInUse(second, "revoked "+first.PEM, "added "+second.PEM)
	if got, err := fx.Identity(ctx, "acme", first.ID); err != nil || got.RevokedAt != 0 {
		t.Errorf("the root of the CA that was replaced is %+v, %v, want it trusted", got, err)
	}

	// A revoked CA issues nothing, and does not prevent the creation of another.
	must.OK(t, fx.RevokeIdentity(ctx, "acme", second.ID))
	must.OK(t, fx.CheckNoCA(ctx, "acme", ca.Jobs))
	third, err := fx.CreateCA(ctx, "acme", ca.Jobs, fx.root(), false)
	must.OK(t, err)
	wantInUse(third, "revoked "+second.PEM, "added "+third.PEM)
}

func (s suite) TestARetiredCAIsRevoked(t *testing.T) {
	fx := s.newFixture(t)
	ctx := t.Context()
	root, err := fx.CreateCA(ctx, "acme", ca.Jobs, fx.root(), false)
	must.OK(t, err)
	must.OK(t, fx.RetireCA(ctx, "acme", ca.Jobs))
	_, err = fx.CA(ctx, "acme", ca.Jobs)
	storetest.WantCode(t, err, ledger.CodeNotFound)
	if got, err := fx.Identity(ctx, "acme", root.ID); err != nil || got.RevokedAt == 0 {
		t.Errorf("the root is %+v, %v, want it revoked", got, err)
	}
	if got, want := fx.caEvents(), []string{"added " + root.PEM, "revoked " + root.PEM}; !slices.Equal(got, want) {
		t.Errorf("events of CAs: %q, want %q", got, want)
	}
	storetest.WantCode(t, fx.RetireCA(ctx, "acme", ca.Jobs), ledger.CodeNotFound)

	// Without an org that can be written to, nothing is created or retired.
	_, err = fx.CreateCA(ctx, "acme", ca.Jobs, fx.root(), false)
	must.OK(t, err)
	_, err = fx.ChangeOrg(ctx, "acme", ledger.OrgChange{Archived: new(true)})
	must.OK(t, err)
	storetest.WantCode(t, fx.RetireCA(ctx, "acme", ca.Jobs), ledger.CodeArchived)
	_, err = fx.CreateCA(ctx, "acme", ca.Jobs, fx.root(), true)
	storetest.WantCode(t, err, ledger.CodeArchived)
}

// certify logs a certificate of a CA for a token with an ID, by a rule.
func (fx *issuers) certify(root identity.Identity, r exchange.Rule, token string) error {
	fx.T.Helper()
	fx.Turn()
	return fx.LogCertificate(fx.T.Context(), "acme", certificate(root), store.Exchange{Rule: r, Claims: fx.claims(token)},
		nil)
}

func certificate(root identity.Identity) store.Certificate {
	return store.Certificate{CA: root.ID, Serial: strings.Repeat("8", 32), Key: "0a", DN: "cn=api,ou=ci-build,o=acme",
		NotAfter: 600_000}
}

// certificates returns the audit events of certificates, as the actor, the serial number and the
// fields.
func (fx *fixture) certificates() (list []string) {
	fx.T.Helper()
	for _, e := range storetest.EventsOf[ledger.AuditEvent](fx.Fixture) {
		if e.Action != ledger.AuditCertificateIssued {
			continue
		}
		line := e.By.Name + " " + e.Target
		for _, change := range e.Changes {
			line += ", " + change.String()
		}
		list = append(list, line)
	}
	return list
}

func (s suite) TestCertificatesAreLogged(t *testing.T) {
	fx := s.newIssuers(t)
	ctx := store.WithActor(t.Context(), ledger.Actor{Name: "rule main"})
	root, err := fx.CreateCA(ctx, "acme", ca.Jobs, fx.root(), false)
	must.OK(t, err)
	rule := fx.rule("1234", "cn=api,ou=ci-build,o=acme", "api")
	claims := fx.claims("one")
	e := store.Exchange{Rule: rule, Claims: claims, Scope: ledger.Read}
	must.OK(t, fx.LogCertificate(ctx, "acme", certificate(root), e, &[32]byte{1}))
	if got, err := fx.TokenByHash(ctx, [32]byte{1}); err != nil || got.Scope != ledger.Read || got.Rule != rule.ID ||
		!slices.Equal(got.Repos, []string{"api"}) {
		t.Errorf("the API token is %+v, %v", got, err)
	}

	want := []string{"rule main " + strings.Repeat("8", 32) + ", dn: cn=api,ou=ci-build,o=acme, key: 0a, " +
		"not_after: 1970-01-01T00:10:00.000Z, ca: " + root.ID + ", rule: " + rule.ID + ", issuer: " + fx.provider.URL +
		", subject: " + claims.Subject() + ", claims_digest: " + claims.Digest()}
	if got := fx.certificates(); len(got) != 1 || !strings.HasPrefix(got[0], want[0]) {
		t.Errorf("logged\n%s\nwant\n%s", strings.Join(got, "\n"), want[0])
	}
}

// A certificate that is not logged is not handed out. So each of these must be an error, and
// leave neither an event nor an API token.
func (s suite) TestCertificatesAreRefused(t *testing.T) {
	fx := s.newIssuers(t)
	ctx := t.Context()
	rule := fx.rule("1234", "cn=api,ou=ci-build,o=acme", "api")
	storetest.WantCode(t, fx.certify(identity.Identity{ID: "idn_1"}, rule, "one"), ledger.CodeNotFound)
	first, err := fx.CreateCA(ctx, "acme", ca.Jobs, fx.root(), false)
	must.OK(t, err)
	must.OK(t, fx.certify(first, rule, "one"))
	storetest.WantCode(t, fx.certify(first, rule, "one"), ledger.CodeTokenUsed)
	_, err = fx.exchange(rule, "one") // nor for an API token
	storetest.WantCode(t, err, ledger.CodeTokenUsed)
	_, err = fx.exchange(rule, "two")
	must.OK(t, err)
	storetest.WantCode(t, fx.certify(first, rule, "two"), ledger.CodeTokenUsed)
	storetest.WantCode(t, fx.certify(first, rule, ""), ledger.CodeInvalidToken) // without a jti

	second, err := fx.CreateCA(ctx, "acme", ca.Jobs, fx.root(), true)
	must.OK(t, err)
	storetest.WantCode(t, fx.certify(first, rule, "three"), ledger.CodeRevokedIdentity)
	must.OK(t, fx.certify(second, rule, "three")) // the token was not used up
	must.OK(t, fx.RemoveRule(ctx, "acme", rule.ID))
	storetest.WantCode(t, fx.certify(second, rule, "four"), ledger.CodeNotFound)
	rule = fx.rule("1234", "cn=api,ou=ci-build,o=acme", "api")
	must.OK(t, fx.RevokeIdentity(ctx, "acme", second.ID))
	storetest.WantCode(t, fx.certify(second, rule, "four"), ledger.CodeRevokedIdentity)
	must.OK(t, fx.RetireCA(ctx, "acme", ca.Jobs))
	storetest.WantCode(t, fx.certify(second, rule, "four"), ledger.CodeNotFound)
	if got := fx.certificates(); len(got) != 2 {
		t.Errorf("logged %q, want two", got)
	}

	third, err := fx.CreateCA(ctx, "acme", ca.Jobs, fx.root(), false)
	must.OK(t, err)
	_, err = fx.ChangeOrg(ctx, "acme", ledger.OrgChange{Archived: new(true)})
	must.OK(t, err)
	storetest.WantCode(t, fx.certify(third, rule, "four"), ledger.CodeArchived)
}

// A rule gives a limited number of API tokens, also with certificates. Without, there is no limit.
func (s suite) TestCertificatesCountAsExchanges(t *testing.T) {
	testenv.From(t, testenv.Full, "fills a limit")
	fx := s.newIssuers(t)
	ctx := t.Context()
	root, err := fx.CreateCA(ctx, "acme", ca.Jobs, fx.root(), false)
	must.OK(t, err)
	rule := fx.rule("1234", "cn=api,ou=ci-build,o=acme", "api")
	certify := func(n int, hash *[32]byte) error {
		e := store.Exchange{Rule: rule, Claims: fx.claims(fmt.Sprint(n)), Scope: ledger.Read}
		return fx.LogCertificate(ctx, "acme", certificate(root), e, hash)
	}
	for n := range exchange.MaxTokens {
		must.OK(t, certify(n, &[32]byte{byte(n), byte(n >> 8)}))
	}
	storetest.WantCode(t, certify(exchange.MaxTokens, &[32]byte{255, 255}), ledger.CodeLimitReached)
	must.OK(t, certify(exchange.MaxTokens, nil)) // the token was not used up
}

func (s suite) TestOfRequestsWithOneTokenOneGetsACertificate(t *testing.T) {
	fx := s.newIssuers(t)
	root, err := fx.CreateCA(t.Context(), "acme", ca.Jobs, fx.root(), false)
	must.OK(t, err)
	stores := []*store.Store{fx.Store, fx.Store}
	if fx.Other != nil {
		stores[1] = fx.Other
	}

	e := store.Exchange{Rule: fx.rule("1234", "cn=api,ou=ci-build,o=acme", "api"), Claims: fx.claims("one")}
	errs := make([]error, 16)
	var wait sync.WaitGroup
	for i := range errs {
		wait.Go(func() {
			errs[i] = stores[i%2].LogCertificate(t.Context(), "acme", certificate(root), e, nil)
		})
	}
	wait.Wait()
	granted := 0
	for _, err := range errs {
		if err == nil {
			granted++
			continue
		}
		storetest.WantCode(t, err, ledger.CodeTokenUsed)
	}
	if events := fx.certificates(); granted != 1 || len(events) != 1 {
		t.Errorf("%d requests got a certificate, %d were logged, want one", granted, len(events))
	}
}
