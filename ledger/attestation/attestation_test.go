package attestation

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

var cosignEnvelopes = []struct {
	file          string
	statement     string
	predicate     string
	predicateType string
	slot          string
	result        ledger.Result
	signer        identity.Signer
}{
	{
		file: "v3-p256.bundle.json", statement: "test-passed.statement.json",
		predicate: "test:ci.yml", predicateType: testResultV01,
		result: ledger.Result{Status: ledger.Pass, DurationMS: 0},
		signer: identity.Signer{DN: identity.DN{CN: "dev", OU: "web", O: "acme"}, Emails: []string{"dev@acme.example"},
			Identity: "idn_p256"},
	},
	{
		file: "v3-p256-failed.dsse.json", statement: "test-failed.statement.json",
		predicate: "test:ci.yml", predicateType: testResultV01,
		result: ledger.Result{Status: ledger.Fail, DurationMS: 0},
		signer: identity.Signer{DN: identity.DN{CN: "dev", OU: "web", O: "acme"}, Emails: []string{"dev@acme.example"},
			Identity: "idn_p256"},
	},
	{
		file: "v3-x509.bundle.json", statement: "test-passed.statement.json",
		predicate: "test:ci.yml", predicateType: testResultV01,
		result: ledger.Result{Status: ledger.Pass, DurationMS: 0},
		signer: identity.Signer{DN: identity.DN{CN: "ci-bot", OU: "build", O: "acme"},
			Emails: []string{"ci-bot@acme.example"}, Identity: "idn_root"},
	},
	{
		file: "v2-p256-provenance.dsse.json", statement: "provenance.statement.json",
		predicate: "build:ci.example/runner", predicateType: slsaV1,
		slot:   "sha256:0000000000000000000000000000000000000000000000000000000000000007",
		result: ledger.Result{Status: ledger.Pass, DurationMS: 150_000},
		signer: identity.Signer{DN: identity.DN{CN: "dev", OU: "web", O: "acme"}, Emails: []string{"dev@acme.example"},
			Identity: "idn_p256"},
	},
}

func TestVerifyCosign(t *testing.T) {
	for _, test := range cosignEnvelopes {
		t.Run(test.file, func(t *testing.T) {
			body := ledgertest.CosignFile(test.file)
			got, err := Verify(body, ledgertest.CosignOrg(), ledgertest.Now)
			must.OK(t, err)

			if got.Commit != ledgertest.Commit || got.Predicate != test.predicate || got.PredicateType != test.predicateType ||
				got.Slot != test.slot || got.Result != test.result {
				t.Errorf("got commit %s, predicate %s of type %s, slot %s, result %v", got.Commit, got.Predicate,
					got.PredicateType, got.Slot, got.Result)
			}
			if s := got.Signer; s.DN != test.signer.DN || !slices.Equal(s.Emails, test.signer.Emails) ||
				s.Identity != test.signer.Identity {
				t.Errorf("got signer %v, want %v", s, test.signer)
			}
			if want := sha256.Sum256(ledgertest.CosignFile(test.statement)); got.PayloadDigest != want {
				t.Errorf("got payload digest %x, want that of the statement, %x", got.PayloadDigest, want)
			}
			if !bytes.Equal(got.Envelope, body) {
				t.Error("the envelope differs from the body")
			}
		})
	}
}

// Any flipped bit in the payload or the signature must be detected.
func TestVerifyCosignFlipped(t *testing.T) {
	org := ledgertest.CosignOrg()

	for _, test := range cosignEnvelopes {
		t.Run(test.file, func(t *testing.T) {
			env := ledgertest.Must(ParseEnvelope(ledgertest.CosignFile(test.file)))
			want := ledger.CodeUntrustedIdentity // cosign's bare DSSE envelopes have no key id
			if env.Hint != "" || env.Certificates != nil {
				want = ledger.CodeInvalidSignature
			}
			for i := range env.Payload {
				env.Payload[i] ^= 1
				_, err := org.Verify(&env.Signed, ledgertest.Now.Std())
				ledgertest.WantCode(t, err, want)
				env.Payload[i] ^= 1
			}
			for i := range env.Signature {
				env.Signature[i] ^= 1
				_, err := org.Verify(&env.Signed, ledgertest.Now.Std())
				ledgertest.WantCode(t, err, want)
				env.Signature[i] ^= 1
			}
			if _, err := org.Verify(&env.Signed, ledgertest.Now.Std()); err != nil {
				t.Errorf("after restoring all bits: %v", err)
			}
		})
	}
}

// The same with Verify: if one character of the base64 changes, the body is refused,
// whatever it decodes to.
func TestVerifyCosignOtherCharacter(t *testing.T) {
	org := ledgertest.CosignOrg()
	for _, test := range cosignEnvelopes {
		t.Run(test.file, func(t *testing.T) {
			body := ledgertest.CosignFile(test.file)
			for _, field := range []string{`"payload":"`, `"sig":"`} {
				start := bytes.Index(body, []byte(field)) + len(field)
				end := start + bytes.IndexByte(body[start:], '"')
				for i := start; i < end; i++ {
					changed := bytes.Clone(body)
					changed[i] = 'A'
					if changed[i] == body[i] {
						changed[i] = 'B'
					}
					if _, err := Verify(changed, org, ledgertest.Now); err == nil {
						t.Errorf("accepted with %q instead of %q at byte %d", changed[i], body[i], i)
					}
				}
			}
		})
	}
}

// Only the org's keyring decides, not what the envelope claims.
func TestVerifyCosignOtherOrg(t *testing.T) {
	other := ledgertest.Keyring(ledgertest.KeyIdentity(ledgertest.NewP256().Public()),
		ledgertest.RootIdentity(ledgertest.NewRoot().Cert))
	for _, test := range cosignEnvelopes {
		for name, keys := range map[string]*identity.Keyring{"an org that trusts others": other,
			"an org without identities": ledgertest.Keyring()} {
			_, err := Verify(ledgertest.CosignFile(test.file), keys, ledgertest.Now)
			t.Run(test.file+" in "+name, func(t *testing.T) { ledgertest.WantCode(t, err, ledger.CodeUntrustedIdentity) })
		}
	}
}

// The digest and the envelope are those of the exact bytes received.
func TestVerifyPreservesBytes(t *testing.T) {
	key := ledgertest.NewP256()
	payload := append([]byte("  "), ledgertest.Passed()...)
	body := append(ledgertest.Must(SignDSSE(key, payload)), '\n')
	got, err := Verify(body, ledgertest.Keyring(ledgertest.KeyIdentity(key.Public())), ledgertest.Now)
	must.OK(t, err)
	if got.PayloadDigest != sha256.Sum256(payload) || !bytes.Equal(got.Envelope, body) {
		t.Error("the payload or the envelope changed")
	}
	if got.Predicate != "test:go" || got.PredicateType != ResultPredicateType ||
		got.Result != (ledger.Result{Status: ledger.Pass, DurationMS: 1234}) {
		t.Errorf("got %s of type %s, result %v", got.Predicate, got.PredicateType, got.Result)
	}
}

// Verify returns a specific error code for each kind of invalid input.
func TestVerifyCodes(t *testing.T) {
	key := ledgertest.NewP256()
	org := ledgertest.Keyring(ledgertest.KeyIdentity(key.Public()))
	signed := func(payload string) string { return string(ledgertest.Must(SignDSSE(key, []byte(payload)))) }
	about := func(digest string) string {
		return signed(`{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":` + digest +
			`}],"predicateType":"https://example.com/seen"}`)
	}

	tests := []struct {
		name string
		body string
		want ledger.Code
	}{
		{"good", about(`{"gitCommit":"` + ledgertest.Commit + `"}`), ""},
		{"nothing", ``, ledger.CodeInvalidJSON},
		{"not JSON", `payload=…`, ledger.CodeInvalidJSON},
		{"truncated", signed("{}")[:40], ledger.CodeInvalidJSON},
		{"trailing data", signed("{}") + "{}", ledger.CodeInvalidJSON},
		{"a duplicate member", `{"payload":"","payload":""}`, ledger.CodeInvalidJSON},
		{"not UTF-8", "{\"payloadType\":\"\xff\"}", ledger.CodeInvalidJSON},
		{"an array", `[]`, ledger.CodeInvalidEnvelope},
		{"null", `null`, ledger.CodeInvalidEnvelope},
		{"another payload type", `{"payloadType":"text/plain","payload":"","signatures":[{"sig":"AAAA"}]}`,
			ledger.CodeUnsupportedPayloadType},
		{"no signature", `{"payloadType":"application/vnd.in-toto+json","payload":"e30=","signatures":[]}`,
			ledger.CodeInvalidEnvelope},
		{"two signatures", `{"payloadType":"application/vnd.in-toto+json","payload":"e30=",` +
			`"signatures":[{"sig":"AAAA"},{"sig":"AAAA"}]}`, ledger.CodeSeveralSignatures},
		{"by an unknown signer", string(ledgertest.Must(SignDSSE(ledgertest.NewP256(), ledgertest.Passed()))),
			ledger.CodeUntrustedIdentity},
		{"not a statement", signed(`{}`), ledger.CodeInvalidStatement},
		{"a payload that is not JSON", signed(`hello`), ledger.CodeInvalidStatement},
		{"no commit", about(`{"sha256":"` + ledgertest.Commit + `"}`), ledger.CodeNoCommitSubject},
		{"several commits", about(`{"gitCommit":"` + ledgertest.Commit + `"}},{"digest":{"gitCommit":"` + otherCommit + `"}`),
			ledger.CodeSeveralCommits},
	}

	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Verify([]byte(test.body), org, ledgertest.Now)
			ledgertest.WantCode(t, err, test.want)
		})
	}
}

// BenchmarkVerify compares the cost of Verify with that of the signature check alone, for
// statements of about 1 KB.
func BenchmarkVerify(b *testing.B) {
	payload := ledgertest.Must(NewStatement("git+https://git.example/acme/cobra", ledgertest.Commit, ResultPredicate{
		Predicate: "test:go", Result: ledger.Result{Status: ledger.Pass, DurationMS: 1234}, StartedOn: ledgertest.Now - 2000,
		FinishedOn:  ledgertest.Now - 766,
		Annotations: map[string]string{"command": strings.Repeat("go test ./... ", 45)},
	}))
	pub, edKey, _ := ed25519.GenerateKey(rand.Reader)
	p256 := ledgertest.NewP256()
	root := ledgertest.NewRoot()
	ci := ledgertest.NewCert(root, ledgertest.CIName(), ledgertest.NewP256(), ledgertest.AsSigner)

	pae := PAE(StatementType, payload)
	sig := ed25519.Sign(edKey, pae)
	b.Run("bare-ed25519", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if !ed25519.Verify(pub, pae, sig) {
				b.Fatal("not verified")
			}
		}
	})
	tests := []struct {
		name string
		body []byte
		keys *identity.Keyring
	}{
		{"ed25519-keyid", ledgertest.Must(SignDSSE(edKey, payload)), ledgertest.Keyring(ledgertest.KeyIdentity(pub))},
		{"p256-keyid", ledgertest.Must(SignDSSE(p256, payload)), ledgertest.Keyring(ledgertest.KeyIdentity(p256.Public()))},
		{"certificate-registered", ledgertest.Must(SignBundle(ci.Key, []*x509.Certificate{ci.Cert}, payload)),
			ledgertest.Keyring(ledgertest.CertIdentity(ci.Cert))},
		{"certificate-chained", ledgertest.Must(SignBundle(ci.Key, []*x509.Certificate{ci.Cert}, payload)),
			ledgertest.Keyring(ledgertest.RootIdentity(root.Cert))},
	}
	for _, test := range tests {
		b.Run(test.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Verify(test.body, test.keys, ledgertest.Now); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// FuzzVerify looks for bodies that cause a panic or an error other than a *ledger.Error,
// or that are accepted with a payload that was not signed.
func FuzzVerify(f *testing.F) {
	key := ledgertest.Must(identity.ParsePrivateKey(ledgertest.CosignFile("leaf.key"), nil))
	leaf := ledgertest.Must(identity.ParseCertificates(ledgertest.CosignFile("leaf.crt")))
	chain := append(leaf, ledgertest.Must(identity.ParseCertificates(ledgertest.CosignFile("ca.crt")))...)
	signed := map[[sha256.Size]byte]bool{}

	for _, test := range cosignEnvelopes {
		f.Add(ledgertest.CosignFile(test.file))
		signed[sha256.Sum256(ledgertest.CosignFile(test.statement))] = true
	}
	payload := ledgertest.Passed()
	signed[sha256.Sum256(payload)] = true
	f.Add(ledgertest.Must(SignDSSE(key, payload)))
	f.Add(ledgertest.Must(SignBundle(key, leaf, payload)))
	f.Add(ledgertest.Must(SignBundle(key, chain, payload)))
	f.Add([]byte(`{"payloadType":"application/vnd.in-toto+json","payload":"e30","signatures":[{"sig":"AAAA",` +
		`"certificate":"-----BEGIN CERTIFICATE-----"}]}`))
	org := ledgertest.CosignOrg()
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := Verify(body, org, ledgertest.Now)
		if err != nil {
			if _, ok := errors.AsType[*ledger.Error](err); !ok || err.Error() == "" {
				t.Fatalf("%T is not a *ledger.Error: %v", err, err)
			}
			return
		}
		if !signed[got.PayloadDigest] {
			t.Fatalf("accepted a payload that was not signed: %+v", got)
		}
		if !ledger.IsCommit(got.Commit) || got.Predicate == "" || !bytes.Equal(got.Envelope, body) {
			t.Fatalf("accepted as %+v", got)
		}
	})
}
