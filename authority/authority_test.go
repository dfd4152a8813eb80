package authority_test

import (
	"bytes"
	"crypto/ecdsa"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/ledgerd/ledgerd/authority"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/oidc/oidctest"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/ca"
	"github.com/ledgerd/ledgerd/ledger/exchange"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store"
	dbcheck "github.com/ledgerd/ledgerd/store/check"
	"github.com/ledgerd/ledgerd/store/storetest"
	"github.com/ledgerd/ledgerd/transparency"
)

func wantCode(t testing.TB, err error, want ledger.Code) {
	t.Helper()
	e, ok := errors.AsType[*ledger.Error](err)
	if !ok || e.Code != want {
		t.Errorf("got %v, want the code %s", err, want)
	}
}

// A fixture is the authority of the org acme, with its repo api.
type fixture struct {
	*authority.Authority
	t        testing.TB
	now      time.Time
	folder   string // of the keys
	file     string // of the database
	provider *oidctest.Provider
	granting exchange.Rule
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{t: t, now: time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC), folder: filepath.Join(t.TempDir(), "keys"),
		provider: oidctest.New(t), file: storetest.NewFile(t)}
	db, err := store.Open(t.Context(), f.file, store.Options{Now: func() time.Time { return f.now }})
	must.OK(t, err)
	t.Cleanup(func() { must.OK(t, db.Close()) })
	storetest.CreateAcme(t, db)
	f.Authority = authority.New(authority.Config{Store: db,
		Keys: func() (*transparency.Keys, error) { return transparency.OpenKeys(f.folder, f.folder) }})
	_, err = db.AddIssuer(t.Context(), "acme", exchange.NewIssuer{URL: f.provider.URL})
	must.OK(t, err)
	f.granting = f.rule()
	return f
}

// create creates the CA of acme.
func (f *fixture) create(n ca.NewAuthority) identity.Identity {
	f.t.Helper()
	if n.May == nil {
		n.May = identity.Predicates{"test:*"}
	}
	root, err := f.Create(f.t.Context(), "acme", ca.Jobs, n)
	must.OK(f.t, err)
	return root
}

// keyFiles returns the number of keys in the folder.
func (f *fixture) keyFiles() int {
	f.t.Helper()
	files := must.Get(filepath.Glob(filepath.Join(f.folder, "ca-*.key")))(f.t)
	return len(files)
}

const job = "cn=api,ou=ci-build,o=acme"

// rule creates a rule that gives a name to jobs of the repository 1.
func (f *fixture) rule() exchange.Rule {
	f.t.Helper()
	n, err := exchange.NewRule{Name: "ci", Issuer: f.provider.URL, RepositoryID: "1", Scope: ledger.Write,
		Repos: []string{"api"}, DN: job, Refs: []string{"main"}}.Completed()
	must.OK(f.t, err)
	r, err := f.Store.CreateRule(f.t.Context(), "acme", n)
	must.OK(f.t, err)
	return r
}

// issue issues a certificate for a token with an ID, and the name of a rule.
func (f *fixture) issue(key *ecdsa.PrivateKey, dn, token string) (ca.Certificate, error) {
	f.t.Helper()
	rule := f.granting
	rule.DN = dn
	return f.Issue(f.t.Context(), "acme", &key.PublicKey, store.Exchange{Rule: rule, Claims: f.claims(token)})
}

// claims returns the claims of a token with an ID.
func (f *fixture) claims(id string) exchange.Claims {
	f.t.Helper()
	token, err := exchange.Parse(f.provider.Token(f.provider.GitHub("x", f.now, map[string]any{"jti": id})))
	must.OK(f.t, err)
	keys := must.Get(exchange.ParseKeys([]byte(f.provider.JWKS())))(f.t)
	c, err := token.Verify(keys)
	must.OK(f.t, err)
	return c
}

// record signs a statement with a certificate, and records it as the server does.
func (f *fixture) record(c ca.Certificate, key *ecdsa.PrivateKey, predicate string) (ledger.AttestationRecord, error) {
	f.t.Helper()
	return f.recordBundle(f.sign(c, key, predicate))
}

func (f *fixture) sign(c ca.Certificate, key *ecdsa.PrivateKey, predicate string) []byte {
	f.t.Helper()
	chain, err := identity.ParseCertificates([]byte(c.Certificate))
	must.OK(f.t, err)
	statement, err := attestation.NewStatement("acme/api", strings.Repeat("1", 40), attestation.ResultPredicate{
		Predicate: predicate, Result: ledger.Result{Status: ledger.Pass}})
	must.OK(f.t, err)
	return must.Get(attestation.SignBundle(key, chain, statement))(f.t)
}

func (f *fixture) recordBundle(bundle []byte) (ledger.AttestationRecord, error) {
	f.t.Helper()
	ring, version, err := f.Store.Keyring(f.t.Context(), "acme")
	must.OK(f.t, err)
	a, err := attestation.Verify(bundle, ring, ledger.TimeOf(f.now))
	if err != nil {
		return ledger.AttestationRecord{}, err
	}
	record, _, err := f.Store.Record(f.t.Context(), "acme", "api", a, version)
	return record, err
}

func TestJobSignsWithItsCertificate(t *testing.T) {
	f := newFixture(t)
	root := f.create(ca.NewAuthority{})
	if root.DNPattern != "ou=ci-*,o=acme" || root.May.String() != "test:*" || root.Kind != identity.RootIdentity {
		t.Errorf("the CA is %+v", root)
	}
	key := oidctest.NewKey(t)
	c, err := f.issue(key, job, "1")
	must.OK(t, err)
	if until := ledger.TimeOf(f.now.Add(ca.Lifetime)); c.DN != job || c.Identity != root.ID || c.NotAfter != until {
		t.Errorf("the certificate is %+v", c)
	}

	record, err := f.record(c, key, "test:go")
	if err != nil || record.Identity != c.DN {
		t.Errorf("recorded %+v: %v", record, err)
	}
	_, err = f.record(c, key, "review:code")
	wantCode(t, err, ledger.CodePredicateNotAllowed)
	other, err := f.issue(oidctest.NewKey(t), job, "2")
	must.OK(t, err)
	swapped := bytes.Replace(f.sign(c, key, "test:other"), encoded(c), encoded(other), 1)
	_, err = f.recordBundle(swapped)
	wantCode(t, err, ledger.CodeInvalidSignature)
	f.now = f.now.Add(ca.Lifetime + time.Second)
	_, err = f.record(c, key, "test:late")
	wantCode(t, err, ledger.CodeExpiredCertificate)
}

// encoded returns a certificate as bundles have it.
func encoded(c ca.Certificate) []byte {
	block, _ := pem.Decode([]byte(c.Certificate))
	return []byte(base64.StdEncoding.EncodeToString(block.Bytes))
}

func TestRuleCannotMintAPerson(t *testing.T) {
	f := newFixture(t)
	f.create(ca.NewAuthority{})
	key := oidctest.NewKey(t)
	for _, dn := range []string{"cn=alice,ou=dev,o=acme", "cn=alice,ou=CI-build,o=acme", "cn=alice,o=acme",
		"cn=api,ou=ci-build,o=globex", "cn=api,ou=ci-build", "alice", ""} {
		_, err := f.issue(key, dn, "1")
		wantCode(t, err, ledger.CodeForbidden)
	}

	// The same is true if the pattern of the CA allows the name.
	root, err := f.Store.CA(t.Context(), "acme", ca.Jobs)
	must.OK(t, err)
	_, err = f.Store.ChangeIdentity(t.Context(), "acme", root.ID, identity.Change{DNPattern: new("")})
	must.OK(t, err)
	_, err = f.issue(key, "cn=alice,ou=dev,o=acme", "1")
	wantCode(t, err, ledger.CodeForbidden)
	_, err = f.issue(key, "cn=api,ou=ci-x,o=globex", "1")
	must.OK(t, err)
}

func TestTokenGivesOneCertificate(t *testing.T) {
	f := newFixture(t)
	f.create(ca.NewAuthority{})
	key := oidctest.NewKey(t)
	_, err := f.issue(key, job, "1")
	must.OK(t, err)
	c, err := f.issue(key, job, "1")
	wantCode(t, err, ledger.CodeTokenUsed)
	if c.Certificate != "" {
		t.Error("the error comes with a certificate")
	}
	_, err = f.issue(key, job, "2")
	must.OK(t, err)
}

func TestCAIsReplaced(t *testing.T) {
	f := newFixture(t)
	first := f.create(ca.NewAuthority{})
	key := oidctest.NewKey(t)
	before, err := f.issue(key, job, "1")
	must.OK(t, err)
	_, err = f.Create(t.Context(), "acme", ca.Jobs, ca.NewAuthority{May: identity.Predicates{"*"}})
	wantCode(t, err, ledger.CodeAlreadyExists)
	if n := f.keyFiles(); n != 1 {
		t.Errorf("%d keys, want no other one", n)
	}
	second := f.create(ca.NewAuthority{Replace: true})
	after, err := f.issue(key, job, "2")
	must.OK(t, err)
	if before.Identity != first.ID || after.Identity != second.ID {
		t.Errorf("issued by %s and %s, want %s and %s", before.Identity, after.Identity, first.ID, second.ID)
	}

	// Running jobs can still use their certificates.
	_, err = f.record(before, key, "test:before")
	must.OK(t, err)
	_, err = f.record(after, key, "test:after")
	must.OK(t, err)
	must.OK(t, f.Store.RevokeIdentity(t.Context(), "acme", first.ID))
	_, err = f.record(before, key, "test:revoked")
	wantCode(t, err, ledger.CodeRevokedIdentity)

	must.OK(t, f.Store.RetireCA(t.Context(), "acme", ca.Jobs))
	_, err = f.issue(key, job, "3")
	wantCode(t, err, ledger.CodeNotFound)
	_, err = f.record(after, key, "test:retired")
	wantCode(t, err, ledger.CodeRevokedIdentity)
	third := f.create(ca.NewAuthority{})
	must.OK(t, f.Store.RevokeIdentity(t.Context(), "acme", third.ID))
	_, err = f.issue(key, job, "3")
	wantCode(t, err, ledger.CodeRevokedIdentity)
	if !strings.Contains(err.Error(), "create another with 'ledgerd identity ci-ca create'") {
		t.Errorf("the error does not say what to do: %v", err)
	}
}

// If several admins create the CA at the same time, one of them succeeds.
func TestCAIsCreatedOnce(t *testing.T) {
	f := newFixture(t)
	errs := make([]error, 8)
	var wait sync.WaitGroup
	for i := range errs {
		wait.Go(func() {
			_, errs[i] = f.Create(t.Context(), "acme", ca.Jobs, ca.NewAuthority{May: identity.Predicates{"*"}})
		})
	}
	wait.Wait()
	created := 0
	for _, err := range errs {
		if err == nil {
			created++
			continue
		}
		wantCode(t, err, ledger.CodeAlreadyExists)
	}
	if created != 1 {
		t.Errorf("created %d CAs, want one", created)
	}
}

func TestCAsAreRefused(t *testing.T) {
	f := newFixture(t)
	for name, n := range map[string]ca.NewAuthority{
		"no predicates":                {},
		"an invalid predicate":         {May: identity.Predicates{"a*b"}},
		"the type of a mapped one":     {May: identity.Predicates{"https://slsa.dev/provenance/v1"}},
		"names of people":              {May: identity.Predicates{"*"}, DNPattern: "cn=*,o=acme"},
		"some names of people":         {May: identity.Predicates{"*"}, DNPattern: "ou=*ci-,o=acme"},
		"one name that is of a person": {May: identity.Predicates{"*"}, DNPattern: "ou=dev,o=acme"},
		"no pattern":                   {May: identity.Predicates{"*"}, DNPattern: "text"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.Create(t.Context(), "acme", ca.Jobs, n)
			wantCode(t, err, ledger.CodeInvalidField)
		})
	}
	_, err := f.Create(t.Context(), "none", ca.Jobs, ca.NewAuthority{May: identity.Predicates{"*"}})
	wantCode(t, err, ledger.CodeNotFound)
	if n := f.keyFiles(); n != 0 {
		t.Errorf("%d keys were written", n)
	}
	root := f.create(ca.NewAuthority{May: identity.Predicates{"*"}, DNPattern: "cn=api, ou=ci-build"})
	if root.DNPattern != "cn=api,ou=ci-build" || root.May != nil {
		t.Errorf("the CA is %+v", root)
	}
}

// What was recorded stays valid when the certificate has expired, and the CA is gone.
func TestEvidenceOutlivesItsCertificate(t *testing.T) {
	f := newFixture(t)
	f.create(ca.NewAuthority{})
	for n := range 3 {
		key := oidctest.NewKey(t)
		c, err := f.issue(key, job, fmt.Sprint(n))
		must.OK(t, err)
		f.now = c.NotAfter.Std() // the last second
		_, err = f.record(c, key, fmt.Sprint("test:", n))
		must.OK(t, err)
	}
	f.create(ca.NewAuthority{Replace: true})
	must.OK(t, f.Store.RetireCA(t.Context(), "acme", ca.Jobs))
	page, err := f.Store.Identities(t.Context(), "acme", store.Query{Limit: 10})
	must.OK(t, err)
	for _, root := range page.Data {
		must.OK(t, f.Store.RevokeIdentity(t.Context(), "acme", root.ID))
	}
	f.now = f.now.AddDate(20, 0, 0) // the CA itself has expired

	report, err := dbcheck.Run(t.Context(), f.file, dbcheck.Options{})
	if err != nil || report.Found != 0 || report.Attestations != 3 {
		t.Errorf("the check says %+v, %v", report, err)
	}
}

// With a scope, the certificate comes with an API token of the rule.
func TestJobGetsAnAPIToken(t *testing.T) {
	f := newFixture(t)
	f.create(ca.NewAuthority{})
	key := oidctest.NewKey(t)
	e := store.Exchange{Rule: f.granting, Claims: f.claims("1"), Scope: ledger.Write}
	c, err := f.Issue(t.Context(), "acme", &key.PublicKey, e)
	must.OK(t, err)
	hash, err := ledger.ParseSecret(c.APIToken)
	must.OK(t, err)
	token, err := f.Store.TokenByHash(t.Context(), hash)
	if err != nil || token.Scope != ledger.Write || token.Rule != f.granting.ID {
		t.Errorf("the API token is %+v, %v", token, err)
	}
	chain, err := identity.ParseCertificates([]byte(c.Certificate))
	must.OK(t, err)
	claims, _, err := ca.ClaimsOf(chain[0])
	if err != nil || claims.Issuer != f.provider.URL || claims.Digest != e.Claims.Digest() {
		t.Errorf("the certificate has the claims %+v, %v", claims, err)
	}

	without, err := f.issue(key, job, "2")
	if err != nil || without.APIToken != "" {
		t.Errorf("without a scope: %q, %v", without.APIToken, err)
	}
}

// A CA issues no certificate that would outlive it. The error says what to do.
func TestCAThatExpiresIsReplaced(t *testing.T) {
	f := newFixture(t)
	root := f.create(ca.NewAuthority{})
	key := oidctest.NewKey(t)
	f.now = root.NotAfter.Std().Add(time.Second - ca.Lifetime)
	_, err := f.issue(key, job, "1")
	wantCode(t, err, ledger.CodeExpiredCertificate)
	if err == nil || !strings.Contains(err.Error(), "replace it with 'ledgerd identity ci-ca rotate'") {
		t.Errorf("the error does not say what to do: %v", err)
	}
	f.create(ca.NewAuthority{Replace: true})
	_, err = f.issue(key, job, "1")
	must.OK(t, err)
}

// Without its key, a CA issues nothing. The token is not used up.
func TestCAWithoutItsKeyIssuesNothing(t *testing.T) {
	f := newFixture(t)
	f.create(ca.NewAuthority{})
	key := oidctest.NewKey(t)
	other := f.folder + "-elsewhere"
	must.OK(t, os.Rename(f.folder, other))
	if _, err := f.issue(key, job, "1"); err == nil {
		t.Error("issued")
	}
	must.OK(t, os.RemoveAll(f.folder))
	must.OK(t, os.Rename(other, f.folder))
	_, err := f.issue(key, job, "1")
	must.OK(t, err)
}
