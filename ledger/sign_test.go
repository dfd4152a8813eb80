package ledger

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"strings"
	"testing"
)

// What the ledger's own client signs, the ledger accepts, for every key kind
// and by either form.
func TestSign(t *testing.T) {
	_, edKey, _ := ed25519.GenerateKey(rand.Reader)
	root := newRoot()
	middle := newCert(root, pkix.Name{CommonName: "acme build CA"}, newP256(), asCA)
	for name, key := range map[string]crypto.Signer{
		"Ed25519":  edKey,
		"P-256":    newP256(),
		"P-384":    must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)),
		"P-521":    must(ecdsa.GenerateKey(elliptic.P521(), rand.Reader)),
		"RSA 2048": must(rsa.GenerateKey(rand.Reader, 2048)),
	} {
		t.Run(name, func(t *testing.T) {
			ours, under := newCert(root, ciName(), key, asSigner), newCert(middle, ciName(), key, asSigner)
			keys, roots := keyringOf(keyIdentity(key.Public())), keyringOf(rootIdentity(root.cert))

			dsse := must(SignDSSE(key, passed()))
			if hint, want := must(ParseEnvelope(dsse)).Hint, must(Fingerprint(key.Public())); hint != want {
				t.Errorf("keyid is %s, want the fingerprint %s", hint, want)
			}
			for form, verified := range map[string]func() (*Attestation, error){
				"DSSE": func() (*Attestation, error) { return Verify(dsse, keys, testNow) },
				"bundle": func() (*Attestation, error) {
					return Verify(must(SignBundle(ours.key, []*x509.Certificate{ours.cert}, passed())), roots, testNow)
				},
				"chain": func() (*Attestation, error) {
					return Verify(must(SignBundle(under.key, []*x509.Certificate{under.cert, middle.cert}, passed())), roots, testNow)
				},
			} {
				got, err := verified()
				if err != nil {
					t.Errorf("%s: %v", form, err)
					continue
				}
				if got.Commit != testCommit || got.Predicate != "test:go" || got.Signer.DN != (DN{"ci", "build", "acme"}) {
					t.Errorf("%s: got %+v", form, got)
				}
			}
		})
	}
}

func TestSignRefused(t *testing.T) {
	small, key := must(rsa.GenerateKey(rand.Reader, 1024)), newP256()
	other := newCert(nil, ciName(), newP256(), asSigner)
	if _, err := SignDSSE(small, passed()); err == nil {
		t.Error("signed with a key that no ledger takes")
	}
	if _, err := SignBundle(key, nil, passed()); err == nil {
		t.Error("made a bundle without a certificate")
	}
	if _, err := SignBundle(key, []*x509.Certificate{other.cert}, passed()); err == nil {
		t.Error("made a bundle with another's certificate")
	}
}

// The statement is the one that the contract shows.
func TestNewStatement(t *testing.T) {
	got, err := NewStatement("git+https://git.example/acme/cobra", testCommit, ResultPredicate{
		Predicate:   "test:go",
		Result:      Result{Fail, 1234},
		StartedOn:   testNow - 1234,
		FinishedOn:  testNow,
		Annotations: map[string]string{"os": "linux", "command": "go test ./..."},
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"_type":"https://in-toto.io/Statement/v1",` +
		`"subject":[{"name":"git+https://git.example/acme/cobra","digest":{"gitCommit":"adbc8813901bba65827259daa8e22ff94ec1f30e"}}],` +
		`"predicateType":"https://github.com/ledgerd/ledgerd/predicate/result/v1",` +
		`"predicate":{"predicate":"test:go","result":{"status":"fail","duration_ms":1234},` +
		`"startedOn":"2026-11-30T00:53:18.766Z","finishedOn":"2026-11-30T00:53:20.000Z",` +
		`"annotations":{"command":"go test ./...","os":"linux"}}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	bare := must(NewStatement("", testCommit, ResultPredicate{Predicate: "test:go", Result: Result{Status: Pass}}))
	const wantBare = `{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"gitCommit":"adbc8813901bba65827259daa8e22ff94ec1f30e"}}],` +
		`"predicateType":"https://github.com/ledgerd/ledgerd/predicate/result/v1","predicate":{"predicate":"test:go","result":{"status":"pass","duration_ms":0}}}`
	if string(bare) != wantBare {
		t.Errorf("got  %s\nwant %s", bare, wantBare)
	}
}

// A client learns of its mistake before it signs.
func TestNewStatementRefused(t *testing.T) {
	good := ResultPredicate{Predicate: "test:go", Result: Result{Status: Pass}}
	for field, change := range map[string]func(*ResultPredicate){
		"predicate.predicate":          func(p *ResultPredicate) { p.Predicate = "test go" },
		"predicate.result.status":      func(p *ResultPredicate) { p.Result.Status = "passed" },
		"predicate.result.duration_ms": func(p *ResultPredicate) { p.Result.DurationMS = -1 },
	} {
		p := good
		change(&p)
		_, err := NewStatement("", testCommit, p)
		wantCode(t, err, CodeInvalidStatement)
		wantField(t, err, field)
	}
	_, err := NewStatement("", "HEAD", good)
	wantField(t, err, "subject[0].digest.gitCommit")
}

func TestAResultWithoutTimesHoldsNone(t *testing.T) {
	text := must(NewStatement("cobra", testCommit, ResultPredicate{Predicate: "test:go", Result: Result{Status: Pass}}))
	if strings.Contains(string(text), `On":`) {
		t.Errorf("it holds a time that there is not: %s", text)
	}
}
