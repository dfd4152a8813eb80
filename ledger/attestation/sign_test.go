package attestation

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

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

// Verify accepts what SignDSSE and SignBundle sign, for every key type.
func TestSign(t *testing.T) {
	_, edKey, _ := ed25519.GenerateKey(rand.Reader)
	root := ledgertest.NewRoot()
	middle := ledgertest.NewCert(root, pkix.Name{CommonName: "acme build CA"}, ledgertest.NewP256(), ledgertest.AsCA)
	for name, key := range map[string]crypto.Signer{
		"Ed25519":  edKey,
		"P-256":    ledgertest.NewP256(),
		"P-384":    ledgertest.Must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)),
		"P-521":    ledgertest.Must(ecdsa.GenerateKey(elliptic.P521(), rand.Reader)),
		"RSA 2048": ledgertest.Must(rsa.GenerateKey(rand.Reader, 2048)),
	} {
		t.Run(name, func(t *testing.T) {
			direct, indirect := ledgertest.NewCert(root, ledgertest.CIName(), key, ledgertest.AsSigner),
				ledgertest.NewCert(middle, ledgertest.CIName(), key, ledgertest.AsSigner)
			keys, roots := ledgertest.Keyring(ledgertest.KeyIdentity(key.Public())),
				ledgertest.Keyring(ledgertest.RootIdentity(root.Cert))

			dsse := ledgertest.Must(SignDSSE(key, ledgertest.Passed()))
			if hint, want := ledgertest.Must(ParseEnvelope(dsse)).Hint,
				ledgertest.Must(identity.Fingerprint(key.Public())); hint != want {
				t.Errorf("got keyid %s, want the fingerprint %s", hint, want)
			}
			for form, verify := range map[string]func() (*Attestation, error){
				"DSSE": func() (*Attestation, error) { return Verify(dsse, keys, ledgertest.Now) },
				"bundle": func() (*Attestation, error) {
					return Verify(ledgertest.Must(SignBundle(direct.Key, []*x509.Certificate{direct.Cert}, ledgertest.Passed())),
						roots, ledgertest.Now)
				},
				"chain": func() (*Attestation, error) {
					return Verify(ledgertest.Must(
						SignBundle(indirect.Key, []*x509.Certificate{indirect.Cert, middle.Cert}, ledgertest.Passed())),
						roots, ledgertest.Now)
				},
			} {
				got, err := verify()
				if err != nil {
					t.Errorf("%s: %v", form, err)
					continue
				}
				if got.Commit != ledgertest.Commit || got.Predicate != "test:go" ||
					got.Signer.DN != (identity.DN{CN: "ci", OU: "build", O: "acme"}) {
					t.Errorf("%s: got %+v", form, got)
				}
			}
		})
	}
}

func TestSignRefused(t *testing.T) {
	small, key := ledgertest.Must(rsa.GenerateKey(rand.Reader, 1024)), ledgertest.NewP256()
	other := ledgertest.NewCert(nil, ledgertest.CIName(), ledgertest.NewP256(), ledgertest.AsSigner)
	if _, err := SignDSSE(small, ledgertest.Passed()); err == nil {
		t.Error("signed with an unsupported key")
	}
	if _, err := SignBundle(key, nil, ledgertest.Passed()); err == nil {
		t.Error("created a bundle without a certificate")
	}
	if _, err := SignBundle(key, []*x509.Certificate{other.Cert}, ledgertest.Passed()); err == nil {
		t.Error("created a bundle with a certificate of another key")
	}
}

// The bytes of a statement are fixed by the contract with clients.
func TestNewStatement(t *testing.T) {
	got, err := NewStatement("git+https://git.example/acme/cobra", ledgertest.Commit, ResultPredicate{
		Predicate:   "test:go",
		Result:      ledger.Result{Status: ledger.Fail, DurationMS: 1234},
		StartedOn:   ledgertest.Now - 1234,
		FinishedOn:  ledgertest.Now,
		Annotations: map[string]string{"os": "linux", "command": "go test ./..."},
	})
	must.OK(t, err)
	const want = `{"_type":"https://in-toto.io/Statement/v1",` +
		`"subject":[{"name":"git+https://git.example/acme/cobra",` +
		`"digest":{"gitCommit":"adbc8813901bba65827259daa8e22ff94ec1f30e"}}],` +
		`"predicateType":"https://github.com/ledgerd/ledgerd/predicate/result/v1",` +
		`"predicate":{"predicate":"test:go","result":{"status":"fail","duration_ms":1234},` +
		`"startedOn":"2026-11-30T00:53:18.766Z","finishedOn":"2026-11-30T00:53:20.000Z",` +
		`"annotations":{"command":"go test ./...","os":"linux"}}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	bare := ledgertest.Must(
		NewStatement("", ledgertest.Commit,
			ResultPredicate{Predicate: "test:go", Result: ledger.Result{Status: ledger.Pass}}))
	const wantBare = `{"_type":"https://in-toto.io/Statement/v1",` +
		`"subject":[{"digest":{"gitCommit":"adbc8813901bba65827259daa8e22ff94ec1f30e"}}],` +
		`"predicateType":"https://github.com/ledgerd/ledgerd/predicate/result/v1","predicate":{"predicate":"test:go",` +
		`"result":{"status":"pass","duration_ms":0}}}`
	if string(bare) != wantBare {
		t.Errorf("got  %s\nwant %s", bare, wantBare)
	}
}

// Invalid results are refused before signing.
func TestNewStatementRefused(t *testing.T) {
	good := ResultPredicate{Predicate: "test:go", Result: ledger.Result{Status: ledger.Pass}}
	for field, change := range map[string]func(*ResultPredicate){
		"predicate.predicate":          func(p *ResultPredicate) { p.Predicate = "test go" },
		"predicate.result.status":      func(p *ResultPredicate) { p.Result.Status = "passed" },
		"predicate.result.duration_ms": func(p *ResultPredicate) { p.Result.DurationMS = -1 },
	} {
		p := good
		change(&p)
		_, err := NewStatement("", ledgertest.Commit, p)
		ledgertest.WantCode(t, err, ledger.CodeInvalidStatement)
		ledgertest.WantField(t, err, field)
	}
	_, err := NewStatement("", "HEAD", good)
	ledgertest.WantField(t, err, "subject[0].digest.gitCommit")
}

func TestNewStatementOmitsZeroTimes(t *testing.T) {
	text := ledgertest.Must(
		NewStatement("cobra", ledgertest.Commit,
			ResultPredicate{Predicate: "test:go", Result: ledger.Result{Status: ledger.Pass}}))
	if strings.Contains(string(text), `On":`) {
		t.Errorf("a zero time is in %s", text)
	}
}
