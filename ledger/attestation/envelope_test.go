package attestation

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

func TestPAE(t *testing.T) {
	// The example of the DSSE protocol.
	got := PAE("http://example.com/HelloWorld", []byte("hello world"))
	if want := "DSSEv1 29 http://example.com/HelloWorld 11 hello world"; string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Base64 as DSSE allows it: two alphabets, padding or none. The payload here
// needs two characters of padding, and - and _ in the URL alphabet.
func TestEnvelopeBase64(t *testing.T) {
	payload := []byte("{\"a\":\"\u07ff\u083f??>\"}")
	std := base64.StdEncoding.EncodeToString(payload)
	if !strings.ContainsAny(std, "+/") || !strings.HasSuffix(std, "=") {
		t.Fatalf("%s is no good example", std)
	}
	tests := []struct {
		name, text string
		ok         bool
	}{
		{"standard", std, true},
		{"standard, not padded", strings.TrimRight(std, "="), true},
		{"standard, with JSON's escapes", strings.ReplaceAll(std, "/", `\/`), true},
		{"URL", base64.URLEncoding.EncodeToString(payload), true},
		{"URL, not padded", base64.RawURLEncoding.EncodeToString(payload), true},
		{"both alphabets", std[:4] + "-_+/" + std[8:], false},
		{"padded too far", std + "=", false},
		{"padded to no length", "e30===", false},
		{"padding alone", "=", false},
		{"padding inside", "e3==" + std, false},
		{"a line end", std[:4] + `\n` + std[4:], false},
		{"a character left over", "e30A=", false},
		{"other bits than a payload's", "e31=", false},
		{"not base64", "{}", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			body := `{"payloadType":"application/vnd.in-toto+json","payload":"` + test.text + `","signatures":[{"sig":"` +
				test.text + `"}]}`
			env, err := ParseEnvelope([]byte(body))
			if !test.ok {
				ledgertest.WantCode(t, err, ledger.CodeInvalidEnvelope)
				ledgertest.WantField(t, err, "payload")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(env.Payload, payload) || !bytes.Equal(env.Signature, payload) {
				t.Errorf("got payload %q, signature %q", env.Payload, env.Signature)
			}
			if !bytes.Equal(env.Message, PAE(StatementType, payload)) {
				t.Errorf("got PAE %q", env.Message)
			}
		})
	}
}

// What is not an envelope, and which field the answer names.
func TestParseEnvelopeRefused(t *testing.T) {
	const dsse = `{"payloadType":"application/vnd.in-toto+json","payload":"e30=","signatures":[{"sig":"AAAA"}]}`
	bundle := func(members string) string {
		return `{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json",` + members + `}`
	}
	leaf := base64.StdEncoding.EncodeToString(
		ledgertest.Must(identity.ParseCertificates(ledgertest.CosignFile("leaf.crt")))[0].Raw)
	certificate := `{"rawBytes":"` + leaf + `"}`
	tests := []struct {
		name, body string
		code       ledger.Code
		field      string
	}{
		{"empty object", `{}`, ledger.CodeInvalidEnvelope, "payloadType"},
		{"no type", `{"payload":"e30=","signatures":[{"sig":"AAAA"}]}`, ledger.CodeInvalidEnvelope, "payloadType"},
		{"type is a number", `{"payloadType":1}`, ledger.CodeInvalidEnvelope, "payloadType"},
		{"another type", strings.Replace(dsse, "in-toto", "out-toto", 1), ledger.CodeUnsupportedPayloadType, "payloadType"},
		{"no payload", strings.Replace(dsse, `"payload":"e30=",`, "", 1), ledger.CodeInvalidEnvelope, "payload"},
		{"payload is null", strings.Replace(dsse, `"e30="`, "null", 1), ledger.CodeInvalidEnvelope, "payload"},
		{"payload is an object", strings.Replace(dsse, `"e30="`, "{}", 1), ledger.CodeInvalidEnvelope, "payload"},
		{"no signatures", strings.Replace(dsse, `{"sig":"AAAA"}`, "", 1), ledger.CodeInvalidEnvelope, "signatures"},
		{"signatures are an object", strings.Replace(dsse, `[{"sig":"AAAA"}]`, "{}", 1), ledger.CodeInvalidEnvelope,
			"signatures"},
		{"no sig", strings.Replace(dsse, `"sig":"AAAA"`, `"keyid":"x"`, 1), ledger.CodeInvalidEnvelope, "signatures[0].sig"},
		{"sig is empty", strings.Replace(dsse, "AAAA", "", 1), ledger.CodeInvalidEnvelope, "signatures[0].sig"},
		{"sig is not base64", strings.Replace(dsse, "AAAA", "A*", 1), ledger.CodeInvalidEnvelope, "signatures[0].sig"},
		{"two signatures", strings.Replace(dsse, `{"sig":"AAAA"}`, `{"sig":"AAAA"},{"sig":"AAAA"}`, 1),
			ledger.CodeSeveralSignatures, "signatures"},
		{"certificate is none", strings.Replace(dsse, `"AAAA"`, `"AAAA","certificate":"AAAA"`, 1), ledger.CodeInvalidEnvelope,
			"signatures[0]"},
		{"certificate is a key",
			strings.Replace(dsse, `"AAAA"`, `"AAAA","certificate":`+
				string(ledgertest.Must(json.Marshal(string(ledgertest.CosignFile("p256.pub"))))), 1), ledger.CodeInvalidEnvelope,
			"signatures[0]"},

		{"another version", `{"mediaType":"application/vnd.dev.sigstore.bundle+json;version=0.1","dsseEnvelope":` + dsse +
			`}`, ledger.CodeInvalidEnvelope, "mediaType"},
		{"a bundle without its type", `{"dsseEnvelope":` + dsse + `}`, ledger.CodeInvalidEnvelope, "mediaType"},
		{"a bundle of a blob",
			bundle(`"messageSignature":{"messageDigest":{"algorithm":"SHA2_256","digest":"AAAA"},"signature":"AAAA"}`),
			ledger.CodeInvalidEnvelope, "messageSignature"},
		{"an empty bundle", bundle(`"verificationMaterial":{}`), ledger.CodeInvalidEnvelope, "dsseEnvelope"},
		{"a bundle of two signatures",
			bundle(`"dsseEnvelope":` + strings.Replace(dsse, `{"sig":"AAAA"}`, `{"sig":"AAAA"},{"sig":"AAAA"}`, 1)),
			ledger.CodeSeveralSignatures, "dsseEnvelope.signatures"},
		{"a bundle's payload", bundle(`"dsseEnvelope":` + strings.Replace(dsse, "e30=", "*", 1)), ledger.CodeInvalidEnvelope,
			"dsseEnvelope.payload"},
		{"a bundle's certificate", bundle(`"verificationMaterial":{"certificate":{"rawBytes":"AAAA"}},"dsseEnvelope":` +
			dsse), ledger.CodeInvalidEnvelope, "verificationMaterial"},
		{"a certificate without bytes", bundle(`"verificationMaterial":{"certificate":{}},"dsseEnvelope":` + dsse),
			ledger.CodeInvalidEnvelope, "verificationMaterial"},
		{"a bundle beside an envelope", bundle(`"dsseEnvelope":` + dsse + `,` + dsse[1:len(dsse)-1]),
			ledger.CodeInvalidEnvelope, "payloadType"},
		{"a bundle beside a payload", bundle(`"dsseEnvelope":` + dsse + `,"payload":"e30="`), ledger.CodeInvalidEnvelope,
			"payload"},
		{"a bundle beside signatures", bundle(`"dsseEnvelope":` + dsse + `,"signatures":[]`), ledger.CodeInvalidEnvelope,
			"signatures"},
		{"eleven certificates, ten of them in one PEM",
			strings.Replace(dsse, `"AAAA"`, `"AAAA","certificate":"`+leaf+`","intermediates":[`+
				string(ledgertest.Must(json.Marshal(strings.Repeat(string(ledgertest.CosignFile("ca.crt")), 10))))+`]`, 1),
			ledger.CodeInvalidEnvelope, "signatures[0]"},
		{"key and certificate", bundle(`"verificationMaterial":{"publicKey":{"hint":"x"},"certificate":` + certificate +
			`},"dsseEnvelope":` + dsse), ledger.CodeInvalidEnvelope, "verificationMaterial"},
		{"eleven certificates",
			bundle(`"verificationMaterial":{"x509CertificateChain":{"certificates":[` + strings.Repeat(certificate+",",
				10) + certificate + `]}},"dsseEnvelope":` + dsse), ledger.CodeInvalidEnvelope, "verificationMaterial"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := ParseEnvelope([]byte(test.body))
			ledgertest.WantCode(t, err, test.code)
			ledgertest.WantField(t, err, test.field)
		})
	}
	for body, want := range map[string]string{
		`[]`:                `a JSON array is not allowed here`,
		`{"payload":7}`:     `payload: JSON value must be string type`,
		`{"signatures":{}}`: `invalid signatures: a JSON object is not allowed here`,
		`{"signatures":""}`: `invalid signatures: a JSON string is not allowed here`,
	} {
		if _, err := ParseEnvelope([]byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want it to say %q", body, err, want)
		}
	}
	t.Run("cosign's old bundle", func(t *testing.T) {
		_, err := ParseEnvelope([]byte(`{"base64Signature":"eyJ9","cert":"LS0t"}`))
		ledgertest.WantCode(t, err, ledger.CodeInvalidEnvelope)
		if !strings.Contains(err.Error(), "--new-bundle-format") {
			t.Errorf("%v does not say what to do", err)
		}
	})
}

// Formats of others grow members; they are no business of the ledger's.
func TestParseEnvelopeOpen(t *testing.T) {
	body := `{"mediaType":"application/vnd.dev.sigstore.bundle+json;version=0.3",
		"verificationMaterial":{"publicKey":{"hint":"our key"},"tlogEntries":[{"logIndex":"1"}],` +
		`"timestampVerificationData":{"rfc3161Timestamps":[]}},
		"dsseEnvelope":{"payloadType":"application/vnd.in-toto+json","payload":"e30","signatures":[{"keyid":"other",` +
		`"sig":"AAAA","extra":[1]}],"more":null}}`
	env, err := ParseEnvelope([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if env.Hint != "our key" || string(env.Payload) != "{}" || len(env.Certificates) != 0 {
		t.Errorf("got %+v", env)
	}
}

// Witness puts the certificates beside the signature, in base64 of PEM; the
// same in PEM or DER alone does as well.
func TestVerifyWitness(t *testing.T) {
	root := ledgertest.NewRoot()
	middle := ledgertest.NewCert(root, pkix.Name{CommonName: "acme build CA"}, ledgertest.NewP256(), ledgertest.AsCA)
	leaf := ledgertest.NewCert(middle, ledgertest.CIName(), ledgertest.NewP256(), ledgertest.AsSigner)
	forms := map[string]func(*x509.Certificate) string{
		"PEM in base64": func(c *x509.Certificate) string {
			return base64.StdEncoding.EncodeToString([]byte(ledgertest.CertPEM(c)))
		},
		"PEM":           ledgertest.CertPEM,
		"DER in base64": func(c *x509.Certificate) string { return base64.StdEncoding.EncodeToString(c.Raw) },
	}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			type signature struct {
				KeyID         string   `json:"keyid"`
				Sig           []byte   `json:"sig"`
				Certificate   string   `json:"certificate"`
				Intermediates []string `json:"intermediates"`
				Timestamps    []any    `json:"timestamps"`
			}
			body := ledgertest.Must(json.Marshal(struct {
				Payload     []byte      `json:"payload"`
				PayloadType string      `json:"payloadType"`
				Signatures  []signature `json:"signatures"`
			}{ledgertest.Passed(), StatementType, []signature{{
				KeyID:       ledgertest.Must(identity.Fingerprint(leaf.Key.Public())),
				Sig:         ledgertest.Must(identity.Sign(leaf.Key, PAE(StatementType, ledgertest.Passed()))),
				Certificate: form(leaf.Cert), Intermediates: []string{form(middle.Cert)},
				Timestamps: []any{map[string]string{"type": "tsp", "data": "AAAA"}},
			}}}))
			got, err := Verify(body, ledgertest.Keyring(ledgertest.RootIdentity(root.Cert)), ledgertest.Now)
			if err != nil {
				t.Fatal(err)
			}
			if got.Signer.DN != (identity.DN{CN: "ci", OU: "build", O: "acme"}) || got.Signer.Identity != "idn_root" {
				t.Errorf("signed by %v", got.Signer)
			}
		})
	}
}
