package ledger

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"strings"
	"testing"
)

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

func BenchmarkPatternMatch(b *testing.B) {
	p := must(ParsePattern("cn=*,ou=build*,o=acme"))
	for b.Loop() {
		if !p.Match(DN{"ci", "build-linux", "acme"}) {
			b.Fatal("no match")
		}
	}
}
