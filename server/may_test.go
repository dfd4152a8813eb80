package server

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// limited returns a new signer that acme trusts to attest only some predicates.
func (b *backend) limited(dn string, may ...string) *signer {
	b.t.Helper()
	s := newSigner(b.t, dn)
	s.id = b.trust(identity.NewIdentity{Kind: identity.KeyIdentity, PEM: s.publicPEM(b.t), DN: dn, May: may}).ID
	return s
}

func identityPath(id string) string { return "/v1/orgs/acme/identities/" + id }

// An identity may attest only the predicates that it was added or changed for. What the
// ledger refuses leaves no rows.
func TestMay(t *testing.T) {
	b := newBackend(t)
	ci := b.limited("cn=ci,ou=build,o=acme", "test:*", "build:docker")
	attest := func(predicate string, run int) response {
		b.t.Helper()
		return b.attest(ci.statement(t, commitID(1), predicate, ledger.Pass, run))
	}

	attest("test:go", 1).want(201)
	attest("build:docker", 1).want(201)
	for _, predicate := range []string{"review:code", "build:docker2", "Test:go", "TEST:go", "test", "xtest:go"} {
		attest(predicate, 1).wantProblem(422, ledger.CodePredicateNotAllowed)
	}
	refused := attest("review:code", 1)
	for _, want := range []string{"cn=ci,ou=build,o=acme", "review:code", ci.id, "test:*,build:docker",
		"ledgerd identity update " + ci.id + " --may"} {
		if !strings.Contains(string(refused.body), want) {
			t.Errorf("%s lacks %q", refused.body, want)
		}
	}
	if attestations, events := b.count(); attestations != 2 || events != 2 {
		t.Errorf("recorded %d attestations and %d events, want 2", attestations, events)
	}

	// A change applies from the next attestation on, and leaves what is recorded.
	changed := decode[identity.Identity](b.patch(identityPath(ci.id), `{"may":["review:*"]}`).want(200))
	if !slices.Equal(changed.May, []string{"review:*"}) || changed.DN != "cn=ci,ou=build,o=acme" {
		t.Errorf("changed: %+v", changed)
	}
	attest("review:code", 1).want(201)
	attest("test:go", 2).wantProblem(422, ledger.CodePredicateNotAllowed)
	if attestations, _ := b.count(); attestations != 3 {
		t.Errorf("%d attestations, want 3", attestations)
	}
	for _, all := range []string{`{"may":[]}`, `{"may":["*"]}`} {
		b.patch(identityPath(ci.id), `{"may":["none"]}`).want(200)
		attest("test:go", 2).wantProblem(422, ledger.CodePredicateNotAllowed)
		if i := decode[identity.Identity](b.patch(identityPath(ci.id), all).want(200)); i.May != nil {
			t.Errorf("%s: %+v", all, i)
		}
	}
	attest("test:go", 2).want(201)
}

// A certificate of a registered key, a new registration, or a root do not let a key attest
// more than its active identity allows.
func TestMayCannotBeWidened(t *testing.T) {
	b := newBackend(t)
	b.trust(identity.NewIdentity{Kind: identity.RootIdentity, PEM: string(cosignFile(t, "ca.crt"))})
	ci := b.limited("cn=ci,ou=build,o=acme", "test:*")
	sign := b.issued(ci.key, "release", "build")
	withCert := func(predicate string) []byte {
		payload, err := attestation.NewStatement("x", commitID(1), attestation.ResultPredicate{Predicate: predicate,
			Result: ledger.Result{Status: ledger.Pass}})
		must.OK(t, err)
		return sign(payload)
	}
	b.attest(withCert("test:go")).want(201)
	b.attest(withCert("deploy:prod")).wantProblem(422, ledger.CodePredicateNotAllowed)

	// Revoked and registered again: only the new list counts.
	b.delete(identityPath(ci.id)).want(204)
	b.attest(withCert("test:go")).wantProblem(422, ledger.CodeRevokedIdentity)
	again := b.trust(identity.NewIdentity{Kind: identity.KeyIdentity, PEM: ci.publicPEM(t), DN: ci.dn,
		May: []string{"deploy:*"}})
	b.attest(withCert("deploy:prod")).want(201)
	b.attest(ci.statement(t, commitID(1), "test:go", ledger.Pass, 2)).wantProblem(422, ledger.CodePredicateNotAllowed)
	b.patch(identityPath(ci.id), `{"may":["test:*"]}`).wantProblem(422, ledger.CodeRevokedIdentity)
	b.patch(identityPath(again.ID), `{"may":["test:*"]}`).want(200)
	b.attest(withCert("deploy:prod")).wantProblem(422, ledger.CodePredicateNotAllowed)
}

// A root certifies only the subjects that match its pattern, and its certificates attest
// only what the root may.
func TestRootLimits(t *testing.T) {
	b := newBackend(t)
	root := b.trust(identity.NewIdentity{Kind: identity.RootIdentity, PEM: string(cosignFile(t, "ca.crt")),
		May: []string{"test:*"}, DNPattern: "OU=build, cn=ci-*"})
	if root.DNPattern != "cn=ci-*,ou=build" {
		t.Errorf("pattern %q", root.DNPattern)
	}
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	attest := func(cn, predicate string) response {
		t.Helper()
		payload, err := attestation.NewStatement("x", commitID(1), attestation.ResultPredicate{Predicate: predicate,
			Result: ledger.Result{Status: ledger.Pass}, Annotations: map[string]string{"cn": cn}})
		must.OK(t, err)
		return b.attest(b.issued(key, cn, "build")(payload))
	}

	attest("ci-1", "test:go").want(201)
	attest("ci-1", "deploy:prod").wantProblem(422, ledger.CodePredicateNotAllowed)
	refused := attest("rita", "test:go")
	refused.wantProblem(422, ledger.CodeUntrustedIdentity)
	if !bytes.Contains(refused.body, []byte("whose dn_pattern cn=ci-*,ou=build does not match")) {
		t.Errorf("got %s", refused.body)
	}
	b.patch(identityPath(root.ID), `{"dn_pattern":"cn=rita","may":["*"]}`).want(200)
	attest("rita", "deploy:prod").want(201)
	attest("ci-1", "lint:go").wantProblem(422, ledger.CodeUntrustedIdentity)
	if i := decode[identity.Identity](b.patch(identityPath(root.ID), `{"dn_pattern":""}`).want(200)); i.DNPattern != "" {
		t.Errorf("changed: %+v", i)
	}
	attest("ci-1", "lint:go").want(201)
}

// The address of a signer is stored with each attestation, so that a change applies to
// later ones only.
func TestChangedEmail(t *testing.T) {
	b := newBackend(t)
	b.setContract(`{"requirements":[{"state":"ATTESTED","predicate":"review:*","exclude_author":true}]}`)
	rita := b.signer("cn=rita,ou=dev,o=acme")
	b.patch(identityPath(rita.id), `{"email":"rita@acme.example"}`).want(200)
	for n := range 2 {
		b.put(commitPath(commitID(n)), `{"author":{"name":"R.","email":"rita@acme.example"}}`).want(201)
	}
	b.attest(rita.statement(t, commitID(0), "review:code", ledger.Pass, 1)).want(201)
	b.patch(identityPath(rita.id), `{"email":""}`).want(200)
	b.attest(rita.statement(t, commitID(1), "review:code", ledger.Pass, 1)).want(201)

	for n, want := range []ledger.State{ledger.Validating, ledger.Attested} {
		if got := b.state(commitID(n)); got < want || n == 0 && got != want {
			t.Errorf("commit %d is %s, want %s", n, got, want)
		}
	}
}

func TestChangeIdentityErrors(t *testing.T) {
	b := newBackend(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	gone := b.signer("cn=gone,ou=build,o=acme")
	b.delete(identityPath(gone.id)).want(204)
	before := b.get("/v1/orgs/acme/identities").want(200).body

	for name, test := range map[string]struct {
		id, body string
		status   int
		code     ledger.Code
		field    string
	}{
		"an unknown field":    {ci.id, `{"dn":"cn=x"}`, 400, ledger.CodeUnknownField, "dn"},
		"not a list":          {ci.id, `{"may":"test:*"}`, 400, ledger.CodeInvalidJSON, "may"},
		"a type of the table": {ci.id, `{"may":["https://openvex.dev/ns"]}`, 422, ledger.CodeInvalidField, "may[0]"},
		"a pattern for a key": {ci.id, `{"dn_pattern":"ou=build"}`, 422, ledger.CodeInvalidField, "dn_pattern"},
		"revoked":             {gone.id, `{"may":["x"]}`, 422, ledger.CodeRevokedIdentity, ""},
		"unknown":             {"idn_01KAJ8Q0M6R4YB0J3X5T9ZC2DE", `{}`, 404, ledger.CodeNotFound, ""},
	} {
		t.Run(name, func(t *testing.T) {
			answer := b.in(t).patch(identityPath(test.id), test.body)
			if test.field != "" {
				answer.wantFields(test.status, test.code, test.field)
				return
			}
			answer.wantProblem(test.status, test.code)
		})
	}
	if after := b.get("/v1/orgs/acme/identities").want(200).body; !bytes.Equal(before, after) {
		t.Errorf("changed: %s", after)
	}
	b.send(request{method: http.MethodPatch, path: identityPath(ci.id), token: b.writer, body: `{}`}).
		wantProblem(403, ledger.CodeForbidden)

	tooMany := `{"may":["` + strings.Repeat(`a","`, 100) + `a"]}`
	b.patch(identityPath(ci.id), tooMany).wantFields(422, ledger.CodeInvalidField, "may")
}
