package ledger

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"testing"
)

// cosignOrg trusts the key and the root that the envelopes in testdata were
// signed with.
func cosignOrg() *Keyring {
	return keyringOf(
		registered("idn_p256", NewIdentity{Kind: KeyIdentity, PEM: string(cosignFile("p256.pub")), DN: "cn=dev,ou=web,o=acme", Email: "dev@acme.example"}),
		registered("idn_root", NewIdentity{Kind: RootIdentity, PEM: string(cosignFile("ca.crt"))}),
	)
}

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
				_, err := org.signer(env, testNow.Std())
				wantCode(t, err, want)
				env.Payload[i] ^= 1
			}
			for i := range env.Signature {
				env.Signature[i] ^= 1
				_, err := org.signer(env, testNow.Std())
				wantCode(t, err, want)
				env.Signature[i] ^= 1
			}
			if _, err := org.signer(env, testNow.Std()); err != nil {
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
