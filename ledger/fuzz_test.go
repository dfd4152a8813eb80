package ledger

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"testing"
)

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

// FuzzStatement looks for statements that come to something the ledger cannot
// hold.
func FuzzStatement(f *testing.F) {
	for _, file := range []string{"provenance.statement.json", "test-failed.statement.json", "test-passed.statement.json"} {
		f.Add(cosignFile(file))
	}
	f.Add(passed())
	f.Add([]byte(statementOf(aboutCommit, vsaV1, `{"verificationResult":"PASSED"}`)))
	f.Add([]byte(statementOf(`[]`, slsaV02, `{"materials":[{"digest":{"sha1":"`+testCommit+`"}}],"metadata":{"buildStartedOn":"2026-11-20T09:00:00Z"}}`)))
	f.Fuzz(func(t *testing.T, payload []byte) {
		got, err := parseStatement(payload)
		if err != nil {
			if _, ok := errors.AsType[*Error](err); !ok || err.Error() == "" {
				t.Fatalf("%T is not an *Error: %v", err, err)
			}
			return
		}
		if !IsCommit(got.commit) || got.predicate == "" || got.predicateType == "" || len(got.predicate) > maxPredicateType {
			t.Fatalf("accepted as %+v", got)
		}
		if got.result.Status == "" || got.result.DurationMS < 0 || got.result.DurationMS > maxDurationMS {
			t.Fatalf("accepted with the result %+v", got.result)
		}
	})
}

// FuzzParseDN checks that a DN is written in one way, which is read back.
func FuzzParseDN(f *testing.F) {
	for _, text := range []string{"cn=ci,ou=build,o=acme", `CN = \ a\,b\00\# , o=\c3\a9`, "o=x", "cn=a=b,ou=#", `cn=\`, "cn=*"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDN(text)
		if err != nil {
			return
		}
		if back, err := ParseDN(d.String()); err != nil || back != d {
			t.Fatalf("%q is %q, written %s, read back as %q, %v", text, d, d, back, err)
		}
	})
}

// FuzzParsePattern checks that a pattern is written in one way, which means
// the same, and that matching ends.
func FuzzParsePattern(f *testing.F) {
	f.Add("cn=*,ou=build*,o=acme", "ci")
	f.Add(`cn=\2a*\*`, "**")
	f.Add(`ou=\ *\ `, "  ")
	f.Add("cn=*a*b*a*", "abba")
	f.Fuzz(func(t *testing.T, text, value string) {
		p, err := ParsePattern(text)
		if err != nil {
			return
		}
		back, err := ParsePattern(p.String())
		if err != nil || back.String() != p.String() {
			t.Fatalf("%q, written %s, is read back as %s, %v", text, p, back, err)
		}
		d := DN{CN: value, OU: value, O: value}
		if p.Match(d) != back.Match(d) {
			t.Fatalf("%s and what it is read back as match %q differently", p, value)
		}
	})
}

// FuzzIdentity looks for PEM that a registration takes, but a keyring does not.
func FuzzIdentity(f *testing.F) {
	for _, file := range []string{"p256.pub", "leaf.crt", "ca.crt", "ca.key"} {
		f.Add(string(cosignFile(file)), "cn=ci,ou=build,o=acme", true)
		f.Add(string(cosignFile(file)), "", false)
	}
	f.Add(pemOf("CERTIFICATE", newCert(nil, ciName(), newP256(), func(*x509.Certificate) {}).cert.Raw), "", true)
	f.Fuzz(func(t *testing.T, text, dn string, root bool) {
		n := NewIdentity{Kind: KeyIdentity, PEM: text, DN: dn}
		if root {
			n.Kind = RootIdentity
		}
		id, err := n.Identity()
		if err != nil {
			wantCode(t, err, CodeInvalidField)
			return
		}
		if _, err := NewKeyring([]Identity{id}); err != nil {
			t.Fatal(err)
		}
	})
}
