package ledger

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
)

var cosignEnvelopes = []struct {
	file      string
	statement string
	predicate string
	result    Result
	signer    Signer
}{
	{
		file: "v3-p256.bundle.json", statement: "test-passed.statement.json",
		predicate: "https://in-toto.io/attestation/test-result/v0.1", result: Result{Pass, 0},
		signer: Signer{DN: DN{"dev", "web", "acme"}, Emails: []string{"dev@acme.example"}, Identity: "idn_p256"},
	},
	{
		file: "v3-p256-failed.dsse.json", statement: "test-failed.statement.json",
		predicate: "https://in-toto.io/attestation/test-result/v0.1", result: Result{Fail, 0},
		signer: Signer{DN: DN{"dev", "web", "acme"}, Emails: []string{"dev@acme.example"}, Identity: "idn_p256"},
	},
	{
		file: "v3-x509.bundle.json", statement: "test-passed.statement.json",
		predicate: "https://in-toto.io/attestation/test-result/v0.1", result: Result{Pass, 0},
		signer: Signer{DN: DN{"ci-bot", "build", "acme"}, Emails: []string{"ci-bot@acme.example"}, Identity: "idn_root"},
	},
	{
		file: "v2-p256-provenance.dsse.json", statement: "provenance.statement.json",
		predicate: "https://slsa.dev/provenance/v1", result: Result{Pass, 150_000},
		signer: Signer{DN: DN{"dev", "web", "acme"}, Emails: []string{"dev@acme.example"}, Identity: "idn_p256"},
	},
}

func TestVerifyCosign(t *testing.T) {
	for _, test := range cosignEnvelopes {
		t.Run(test.file, func(t *testing.T) {
			body := cosignFile(test.file)
			got, err := Verify(body, cosignOrg(), testNow)
			if err != nil {
				t.Fatal(err)
			}
			if got.Commit != testCommit || got.Predicate != test.predicate || got.PredicateType != test.predicate || got.Result != test.result {
				t.Errorf("got commit %s, predicate %s of type %s, result %v", got.Commit, got.Predicate, got.PredicateType, got.Result)
			}
			if s := got.Signer; s.DN != test.signer.DN || !slices.Equal(s.Emails, test.signer.Emails) || s.Identity != test.signer.Identity {
				t.Errorf("got signer %v, want %v", s, test.signer)
			}
			if want := sha256.Sum256(cosignFile(test.statement)); got.PayloadDigest != want {
				t.Errorf("got payload digest %x, want that of the statement, %x", got.PayloadDigest, want)
			}
			if !bytes.Equal(got.Envelope, body) {
				t.Error("the envelope is not the bytes that were given")
			}
		})
	}
}

// Every single flipped bit of the payload and of the signature must be noticed.
func TestVerifyCosignFlipped(t *testing.T) {
	org := cosignOrg()
	for _, test := range cosignEnvelopes {
		t.Run(test.file, func(t *testing.T) {
			env := must(ParseEnvelope(cosignFile(test.file)))
			want := CodeUntrustedIdentity // a bare DSSE of cosign names no key
			if env.Hint != "" || env.Certificates != nil {
				want = CodeInvalidSignature
			}
			for i := range env.Payload {
				env.Payload[i] ^= 1
				_, err := org.Verify(&env.Signed, testNow.Std())
				wantCode(t, err, want)
				env.Payload[i] ^= 1
			}
			for i := range env.Signature {
				env.Signature[i] ^= 1
				_, err := org.Verify(&env.Signed, testNow.Std())
				wantCode(t, err, want)
				env.Signature[i] ^= 1
			}
			if _, err := org.Verify(&env.Signed, testNow.Std()); err != nil {
				t.Errorf("with all bits back: %v", err)
			}
		})
	}
}

// The same through the front door: one character of the posted base64 is
// another one. Whatever it is then taken for, it is not accepted.
func TestVerifyCosignOtherCharacter(t *testing.T) {
	org := cosignOrg()
	for _, test := range cosignEnvelopes {
		t.Run(test.file, func(t *testing.T) {
			body := cosignFile(test.file)
			for _, field := range []string{`"payload":"`, `"sig":"`} {
				start := bytes.Index(body, []byte(field)) + len(field)
				end := start + bytes.IndexByte(body[start:], '"')
				for i := start; i < end; i++ {
					changed := bytes.Clone(body)
					changed[i] = 'A'
					if changed[i] == body[i] {
						changed[i] = 'B'
					}
					if _, err := Verify(changed, org, testNow); err == nil {
						t.Errorf("accepted with %q for %q at byte %d", changed[i], body[i], i)
					}
				}
			}
		})
	}
}

// What the envelope claims does not matter, only what the org trusts.
func TestVerifyCosignOtherOrg(t *testing.T) {
	other := keyringOf(keyIdentity(newP256().Public()), rootIdentity(newRoot().cert))
	for _, test := range cosignEnvelopes {
		for name, keys := range map[string]*Keyring{"an org that trusts others": other, "an org that trusts nobody": keyringOf()} {
			_, err := Verify(cosignFile(test.file), keys, testNow)
			t.Run(test.file+" in "+name, func(t *testing.T) { wantCode(t, err, CodeUntrustedIdentity) })
		}
	}
}

// The digest and the envelope are of the bytes that came, whatever their form.
func TestVerifyKeepsBytes(t *testing.T) {
	key := newP256()
	payload := append([]byte("  "), passed()...)
	body := append(must(SignDSSE(key, payload)), '\n')
	got, err := Verify(body, keyringOf(keyIdentity(key.Public())), testNow)
	if err != nil {
		t.Fatal(err)
	}
	if got.PayloadDigest != sha256.Sum256(payload) || !bytes.Equal(got.Envelope, body) {
		t.Error("payload or envelope were changed")
	}
	if got.Predicate != "test:go" || got.PredicateType != ResultPredicateType || got.Result != (Result{Pass, 1234}) {
		t.Errorf("got %s of type %s, result %v", got.Predicate, got.PredicateType, got.Result)
	}
}

// Everything that Verify can say, with an envelope for each.
func TestVerifyCodes(t *testing.T) {
	key := newP256()
	org := keyringOf(keyIdentity(key.Public()))
	signed := func(payload string) string { return string(must(SignDSSE(key, []byte(payload)))) }
	about := func(digest string) string {
		return signed(`{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":` + digest + `}],"predicateType":"https://example.com/seen"}`)
	}
	tests := []struct {
		name string
		body string
		want Code
	}{
		{"good", about(`{"gitCommit":"` + testCommit + `"}`), ""},
		{"nothing", ``, CodeInvalidJSON},
		{"not JSON", `payload=…`, CodeInvalidJSON},
		{"cut off", signed("{}")[:40], CodeInvalidJSON},
		{"followed by more", signed("{}") + "{}", CodeInvalidJSON},
		{"a member twice", `{"payload":"","payload":""}`, CodeInvalidJSON},
		{"not UTF-8", "{\"payloadType\":\"\xff\"}", CodeInvalidJSON},
		{"an array", `[]`, CodeInvalidEnvelope},
		{"null", `null`, CodeInvalidEnvelope},
		{"another type", `{"payloadType":"text/plain","payload":"","signatures":[{"sig":"AAAA"}]}`, CodeUnsupportedPayloadType},
		{"no signature", `{"payloadType":"application/vnd.in-toto+json","payload":"e30=","signatures":[]}`, CodeInvalidEnvelope},
		{"two signatures", `{"payloadType":"application/vnd.in-toto+json","payload":"e30=","signatures":[{"sig":"AAAA"},{"sig":"AAAA"}]}`, CodeSeveralSignatures},
		{"by somebody else", string(must(SignDSSE(newP256(), passed()))), CodeUntrustedIdentity},
		{"not a statement", signed(`{}`), CodeInvalidStatement},
		{"not even JSON inside", signed(`hello`), CodeInvalidStatement},
		{"no commit", about(`{"sha256":"` + testCommit + `"}`), CodeNoCommitSubject},
		{"several commits", about(`{"gitCommit":"` + testCommit + `","sha1":"` + "0123456789012345678901234567890123456789" + `"}`), CodeSeveralCommits},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Verify([]byte(test.body), org, testNow)
			wantCode(t, err, test.want)
		})
	}
}

// BenchmarkVerify shows what verification costs beside the bare signature
// check, for statements of about 1 KB.
func BenchmarkVerify(b *testing.B) {
	payload := must(NewStatement("git+https://git.example/acme/cobra", testCommit, ResultPredicate{
		Predicate: "test:go", Result: Result{Pass, 1234}, StartedOn: testNow - 2000, FinishedOn: testNow - 766,
		Annotations: map[string]string{"command": strings.Repeat("go test ./... ", 45)},
	}))
	pub, edKey, _ := ed25519.GenerateKey(rand.Reader)
	p256 := newP256()
	root := newRoot()
	ci := newCert(root, ciName(), newP256(), asSigner)

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
		keys *Keyring
	}{
		{"ed25519-keyid", must(SignDSSE(edKey, payload)), keyringOf(keyIdentity(pub))},
		{"p256-keyid", must(SignDSSE(p256, payload)), keyringOf(keyIdentity(p256.Public()))},
		{"certificate-registered", must(SignBundle(ci.key, []*x509.Certificate{ci.cert}, payload)), keyringOf(certIdentity(ci.cert))},
		{"certificate-chained", must(SignBundle(ci.key, []*x509.Certificate{ci.cert}, payload)), keyringOf(rootIdentity(root.cert))},
	}
	for _, test := range tests {
		b.Run(test.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Verify(test.body, test.keys, testNow); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParseEnvelope(b *testing.B) {
	body := must(SignDSSE(newP256(), passed()))
	b.ReportAllocs()
	for b.Loop() {
		must(ParseEnvelope(body))
	}
}

// FuzzVerify looks for bodies that panic, that fail with something other than
// an *Error, or that are accepted though their payload is not one that was
// signed.
func FuzzVerify(f *testing.F) {
	key := must(ParsePrivateKey(cosignFile("leaf.key")))
	leaf := must(ParseCertificates(cosignFile("leaf.crt")))
	chain := append(leaf, must(ParseCertificates(cosignFile("ca.crt")))...)
	signed := map[[sha256.Size]byte]bool{}
	for _, test := range cosignEnvelopes {
		f.Add(cosignFile(test.file))
		signed[sha256.Sum256(cosignFile(test.statement))] = true
	}
	payload := passed()
	signed[sha256.Sum256(payload)] = true
	f.Add(must(SignDSSE(key, payload)))
	f.Add(must(SignBundle(key, leaf, payload)))
	f.Add(must(SignBundle(key, chain, payload)))
	f.Add([]byte(`{"payloadType":"application/vnd.in-toto+json","payload":"e30","signatures":[{"sig":"AAAA","certificate":"-----BEGIN CERTIFICATE-----"}]}`))
	org := cosignOrg()
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := Verify(body, org, testNow)
		if err != nil {
			if _, ok := errors.AsType[*Error](err); !ok || err.Error() == "" {
				t.Fatalf("%T is not an *Error: %v", err, err)
			}
			return
		}
		if !signed[got.PayloadDigest] {
			t.Fatalf("accepted a payload that nobody signed: %+v", got)
		}
		if !IsCommit(got.Commit) || got.Predicate == "" || !bytes.Equal(got.Envelope, body) {
			t.Fatalf("accepted as %+v", got)
		}
	})
}
