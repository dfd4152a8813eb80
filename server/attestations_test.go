package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"math/big"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// trustCosign adds the identities of the cosign fixtures to acme.
func (b *backend) trustCosign() (key, root identity.Identity) {
	b.t.Helper()
	key = b.trust(identity.NewIdentity{Kind: identity.KeyIdentity, PEM: string(cosignFile(b.t, "p256.pub")),
		DN: "cn=cosign,ou=build,o=acme"})
	root = b.trust(identity.NewIdentity{Kind: identity.RootIdentity, PEM: string(cosignFile(b.t, "ca.crt"))})
	return key, root
}

// cosignContract requires the predicate type of cosign's test results for ATTESTED.
const cosignContract = `{"requirements":[{"state":"ATTESTED",` +
	`"predicate":"https://in-toto.io/attestation/test-result/v0.1"}]}`

func (b *backend) setContract(contract string) {
	b.t.Helper()
	b.send(request{method: "PUT", path: "/v1/orgs/acme/policies/api", token: b.admin, body: contract,
		header: map[string]string{"If-Match": "*"}}).want(200)
	must.OK(b.t, b.store.Settle(b.t.Context()))
}

func TestCosign(t *testing.T) {
	const testResult, provenance = "https://in-toto.io/attestation/test-result/v0.1", "https://slsa.dev/provenance/v1"
	const tested, built = "test:ci.yml", "build:ci.example/runner"
	for _, test := range []struct {
		file, mediaType string
		want            ledger.AttestationRecord
		state           ledger.State
	}{
		{"v3-p256.bundle.json", typeBundle,
			ledger.AttestationRecord{Predicate: tested, PredicateType: testResult,
				Identity: "cn=cosign,ou=build,o=acme", Signer: "cosign",
				Result: ledger.Result{Status: ledger.Pass}}, ledger.Promotable},
		{"v3-p256-failed.dsse.json", typeDSSE,
			ledger.AttestationRecord{Predicate: tested, PredicateType: testResult,
				Identity: "cn=cosign,ou=build,o=acme", Signer: "cosign",
				Result: ledger.Result{Status: ledger.Fail}}, ledger.Validating},
		{"v3-x509.bundle.json", typeBundle,
			ledger.AttestationRecord{Predicate: tested, PredicateType: testResult,
				Identity: "cn=ci-bot,ou=build,o=acme", Signer: "ci-bot",
				Result: ledger.Result{Status: ledger.Pass}}, ledger.Promotable},
		{"v2-p256-provenance.dsse.json", typeDSSE,
			ledger.AttestationRecord{Predicate: built, PredicateType: provenance,
				Slot: "sha256:" + strings.Repeat("0", 63) + "7", Identity: "cn=cosign,ou=build,o=acme", Signer: "cosign",
				Result: ledger.Result{Status: ledger.Pass, DurationMS: 150_000}}, ledger.Validating},
	} {
		t.Run(test.file, func(t *testing.T) {
			b := newBackend(t)
			key, root := b.trustCosign()
			b.setContract(cosignContract)
			envelope := cosignFile(t, test.file)
			resp := b.attest(envelope).want(201)
			got := decode[ledger.AttestationRecord](resp)

			want := test.want
			want.Org, want.Repo, want.Commit, want.RecordedAt = "acme", "api", cosignCommit, b.clock.time()
			want.ID, want.Event, want.PayloadDigest = got.ID, got.Event, got.PayloadDigest
			if got != want {
				t.Errorf("recorded\n%+v, want\n%+v", got, want)
			}
			if location := resp.header.Get("Location"); location != attestationsPath+"/"+got.ID {
				t.Errorf("Location: %s", location)
			}
			read := decode[ledger.AttestationRecord](b.get(resp.header.Get("Location")).want(200))
			if v := read.Verification; v == nil || v.IdentityID != key.ID && v.IdentityID != root.ID || v.RunURL != "" {
				t.Errorf("verification %+v", v)
			}
			if read.Verification = nil; read != got {
				t.Errorf("read\n%+v, want\n%+v", read, got)
			}
			posted := b.get(attestationsPath + "/" + got.ID + "/envelope").want(200)
			if string(posted.body) != string(envelope) || posted.header.Get("Content-Type") != test.mediaType {
				t.Errorf("the envelope is returned as %s, different: %t", posted.header.Get("Content-Type"),
					string(posted.body) != string(envelope))
			}
			if state := b.state(cosignCommit); state != test.state {
				t.Errorf("the commit is %s, want %s", state, test.state)
			}
		})
	}
}

// flipped returns an envelope with one bit changed in the decoded bytes of a base64
// field.
func flipped(t *testing.T, envelope []byte, member string) []byte {
	t.Helper()
	_, rest, ok := strings.Cut(string(envelope), `"`+member+`":"`)
	text, _, _ := strings.Cut(rest, `"`)
	raw, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil {
		t.Fatalf("no %s in %s: %v", member, envelope, err)
	}
	raw[len(raw)/2] ^= 1
	return []byte(strings.Replace(string(envelope), text, base64.StdEncoding.EncodeToString(raw), 1))
}

// issue returns a certificate of ci-bot that the CA of the fixtures issued, after
// applying change to its template.
func issue(t *testing.T, now time.Time, change func(*x509.Certificate)) (*ecdsa.PrivateKey, *x509.Certificate) {
	t.Helper()
	caKey, ca := cosignAuthority(t)
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: "ci-bot", OrganizationalUnit: []string{"build"}, Organization: []string{"acme"}},
		NotBefore:    now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	}
	change(template)
	der := must.Get(x509.CreateCertificate(rand.Reader, template, ca, key.Public(), caKey))(t)
	cert := must.Get(x509.ParseCertificate(der))(t)
	return key, cert
}

func statement(subjects, predicateType, predicate string) []byte {
	return fmt.Appendf(nil, `{"_type":"https://in-toto.io/Statement/v1","subject":[%s],"predicateType":%q,"predicate":%s}`,
		subjects, predicateType, predicate)
}

func TestInvalidAttestations(t *testing.T) {
	b := newBackend(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	about := func(sha string) string { return fmt.Sprintf(`{"name":"x","digest":{"gitCommit":%q}}`, sha) }
	good := string(ci.statement(t, commitID(1), "test:go", ledger.Pass, 1))
	signature := good[strings.Index(good, `"signatures":[`)+len(`"signatures":[`) : len(good)-2]
	revoked := b.signer("cn=gone,ou=build,o=acme")
	b.delete("/v1/orgs/acme/identities/" + revoked.id).want(204)
	const custom = "https://acme.example/custom/v1"

	for name, test := range map[string]struct {
		body   string
		status int
		code   ledger.Code
	}{
		"empty body":     {"", 400, ledger.CodeInvalidJSON},
		"truncated JSON": {good[:len(good)-1], 400, ledger.CodeInvalidJSON},
		"not JSON":       {"-----BEGIN", 400, ledger.CodeInvalidJSON},
		"5 MiB":          {`{"payload":"` + strings.Repeat("A", 5<<20) + `"}`, 413, ledger.CodePayloadTooLarge},
		"empty object":   {`{}`, 422, ledger.CodeInvalidEnvelope},
		"empty array":    {`[]`, 422, ledger.CodeInvalidEnvelope},
		"no signature":   {strings.Replace(good, signature, "", 1), 422, ledger.CodeInvalidEnvelope},
		"two signatures": {strings.Replace(good, signature, signature+","+signature, 1), 422,
			ledger.CodeSeveralSignatures},
		"unknown payload type": {strings.Replace(good, attestation.StatementType, "application/json", 1), 422,
			ledger.CodeUnsupportedPayloadType},
		"untrusted signer": {string(newSigner(t, "cn=eve").statement(t, commitID(1), "test:go", ledger.Pass, 1)), 422,
			ledger.CodeUntrustedIdentity},
		"revoked signer": {string(revoked.statement(t, commitID(1), "test:go", ledger.Pass, 1)), 422,
			ledger.CodeRevokedIdentity},
		"flipped payload":   {string(flipped(t, []byte(good), "payload")), 422, ledger.CodeInvalidSignature},
		"flipped signature": {string(flipped(t, []byte(good), "sig")), 422, ledger.CodeInvalidSignature},
		"not a statement":   {string(ci.sign(t, []byte(`{"hello":"world"}`))), 422, ledger.CodeInvalidStatement},
		"no commit": {
			string(ci.sign(t, statement(`{"name":"x","digest":{"sha256":"`+strings.Repeat("0", 64)+`"}}`, custom, `{}`))), 422,
			ledger.CodeNoCommitSubject},
		"several commits": {string(ci.sign(t, statement(about(commitID(1))+","+about(commitID(2)), custom, `{}`))),
			422, ledger.CodeSeveralCommits},
		"unknown status": {
			string(ci.sign(t, statement(about(commitID(1)), attestation.ResultPredicateType,
				`{"predicate":"test:go","result":{"status":"ok","duration_ms":1}}`))), 422, ledger.CodeInvalidStatement},
		"predicate with a space": {
			string(ci.sign(t, statement(about(commitID(1)), attestation.ResultPredicateType,
				`{"predicate":"test go","result":{"status":"pass","duration_ms":1}}`))), 422, ledger.CodeInvalidStatement},
	} {
		t.Run(name, func(t *testing.T) {
			b := b.in(t)
			resp := b.send(request{method: "POST", path: attestationsPath, token: b.writer, body: test.body,
				header: map[string]string{"Content-Type": typeJSON}})
			resp.wantProblem(test.status, test.code)
		})
	}
	t.Run("unsupported media type", func(t *testing.T) {
		b := b.in(t)
		b.send(request{method: "POST", path: attestationsPath, token: b.writer, body: good,
			header: map[string]string{"Content-Type": "text/plain"}}).
			wantProblem(415, ledger.CodeUnsupportedMediaType)
	})
	t.Run("unknown repo", func(t *testing.T) {
		b := b.in(t)
		b.send(request{method: "POST", path: "/v1/orgs/acme/repos/none/attestations", token: b.writer,
			body: good}).wantProblem(404, ledger.CodeNotFound)
	})
	t.Run("read token", func(t *testing.T) {
		b := b.in(t)
		b.send(request{method: "POST", path: attestationsPath, token: b.reader, body: good}).wantProblem(403,
			ledger.CodeForbidden)
	})

	if attestations, events := b.count(); attestations+events != 0 {
		t.Errorf("recorded %d attestations and %d events", attestations, events)
	}
	commits := decode[ledger.Page[ledger.CommitSummary]](b.get("/v1/orgs/acme/repos/api/commits").want(200))
	if len(commits.Data) != 0 {
		t.Errorf("rejected attestations registered commits: %+v", commits.Data)
	}
}

func TestMediaTypesOfAttestations(t *testing.T) {
	b := newBackend(t)
	b.trustCosign()
	ci := b.signer("cn=ci,ou=build,o=acme")
	for i, mediaType := range []string{typeJSON, "application/json; charset=utf-8", typeDSSE} {
		b.send(request{method: "POST", path: attestationsPath, token: b.writer,
			header: map[string]string{"Content-Type": mediaType},
			body:   string(ci.statement(t, commitID(1), "test:go", ledger.Pass, i))}).want(201)
	}
	bundle := string(cosignFile(t, "v3-p256.bundle.json"))
	old := strings.Replace(bundle, typeBundle, typeBundleOld+";version=0.3", 1)
	b.send(request{method: "POST", path: attestationsPath, token: b.writer,
		header: map[string]string{"Content-Type": typeBundleOld + ";version=0.3"}, body: old}).want(201)
	b.send(request{method: "POST", path: attestationsPath, token: b.writer,
		header: map[string]string{"Content-Type": typeBundle}, body: bundle}).want(200)

	first := decode[ledger.Page[ledger.AttestationRecord]](b.get(attestationsPath + "?limit=1").want(200)).Data[0]
	envelope := b.get(attestationsPath + "/" + first.ID + "/envelope").want(200)
	if got := envelope.header.Get("Content-Type"); got != typeBundleOld+";version=0.3" || string(envelope.body) != old {
		t.Errorf("the bundle is returned as %s: %s", got, envelope.body)
	}
}

// The server reads its clock once to authenticate the caller, and once for each
// verification. The test adds an identity during the first few verifications.
func TestKeyringChangesDuringVerification(t *testing.T) {
	for times, status := range map[int64]int{0: 201, 1: 201, 5: 201, 100: 503} {
		var read atomic.Pointer[func()]
		b := newBackend(t, func(c *Config) {
			now := c.Now
			c.Now = func() time.Time {
				if f := read.Load(); f != nil {
					(*f)()
				}
				return now()
			}
		})

		body := b.signer("cn=ci,ou=build,o=acme").statement(t, commitID(1), "test:go", ledger.Pass, 1)
		var reads atomic.Int64
		count := func() {
			if n := reads.Add(1); n > 1 && n <= 1+times {
				b.addIdentityToStore()
			}
		}
		read.Store(&count)

		resp := b.attest(body)
		if resp.status != status || (resp.header.Get("Retry-After") != "") != (status == 503) {
			t.Errorf("keyring changed %d times: %d, want %d: %v %s", times, resp.status, status, resp.header, resp.body)
		}
		if n, _ := b.count(); n != 1 && status == 201 || n != 0 && status == 503 {
			t.Errorf("keyring changed %d times: %d attestations are recorded", times, n)
		}
		if status == 201 && reads.Load() < 2+times {
			t.Errorf("keyring changed %d times: the clock was read %d times", times, reads.Load())
		}
	}
}

// addIdentityToStore adds an identity to acme in the store, without the server.
func (b *backend) addIdentityToStore() {
	b.t.Helper()
	identity, err := identity.NewIdentity{Kind: identity.KeyIdentity, PEM: newSigner(b.t, "").publicPEM(b.t),
		DN: "cn=new,ou=build,o=acme"}.Identity()
	must.OK(b.t, err)
	_, err = b.store.AddIdentity(b.t.Context(), "acme", identity)
	must.OK(b.t, err)
}

// The server verifies against a cached keyring. Added and revoked identities still
// take effect immediately, even if another process changed them.
func TestIdentityChangesTakeEffectImmediately(t *testing.T) {
	b := newBackend(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	b.attest(ci.statement(t, commitID(1), "test:go", ledger.Pass, 1)).want(201)

	added := newSigner(t, "cn=new,ou=build,o=acme")
	b.attest(added.statement(t, commitID(1), "test:go", ledger.Pass, 1)).wantProblem(422, ledger.CodeUntrustedIdentity)
	identity, err := identity.NewIdentity{
		Kind: identity.KeyIdentity, PEM: added.publicPEM(t), DN: "cn=new,ou=build,o=acme",
	}.Identity()
	must.OK(t, err)
	_, err = b.store.AddIdentity(t.Context(), "acme", identity)
	must.OK(t, err)
	b.attest(added.statement(t, commitID(1), "test:go", ledger.Pass, 1)).want(201)

	must.OK(t, b.store.RevokeIdentity(t.Context(), "acme", ci.id))
	b.attest(ci.statement(t, commitID(1), "test:go", ledger.Pass, 2)).wantProblem(422, ledger.CodeRevokedIdentity)
}
