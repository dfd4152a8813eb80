package attestation

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

func TestPAE(t *testing.T) {
	// The example in the DSSE specification.
	got := PAE("http://example.com/HelloWorld", []byte("hello world"))
	if want := "DSSEv1 29 http://example.com/HelloWorld 11 hello world"; string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// DSSE allows the standard and the URL alphabet, with or without padding. The payload
// needs two padding characters, and - and _ in the URL alphabet.
func TestEnvelopeBase64(t *testing.T) {
	payload := []byte("{\"a\":\"\u07ff\u083f??>\"}")
	std := base64.StdEncoding.EncodeToString(payload)
	if !strings.ContainsAny(std, "+/") || !strings.HasSuffix(std, "=") {
		t.Fatalf("%s has no padding or no + or /", std)
	}

	tests := []struct {
		name, text string
		ok         bool
	}{
		{"standard", std, true},
		{"standard, without padding", strings.TrimRight(std, "="), true},
		{"standard, with JSON escapes", strings.ReplaceAll(std, "/", `\/`), true},
		{"URL", base64.URLEncoding.EncodeToString(payload), true},
		{"URL, without padding", base64.RawURLEncoding.EncodeToString(payload), true},
		{"both alphabets", std[:4] + "-_+/" + std[8:], false},
		{"too much padding", std + "=", false},
		{"three padding characters", "e30===", false},
		{"only padding", "=", false},
		{"padding inside", "e3==" + std, false},
		{"a line break", std[:4] + `\n` + std[4:], false},
		{"an incomplete group", "e30A=", false},
		{"non-zero trailing bits", "e31=", false},
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
			must.OK(t, err)
			if !bytes.Equal(env.Payload, payload) || !bytes.Equal(env.Signature, payload) {
				t.Errorf("got payload %q, signature %q", env.Payload, env.Signature)
			}
			if !bytes.Equal(env.Message, PAE(StatementType, payload)) {
				t.Errorf("got PAE %q", env.Message)
			}
		})
	}
}

// An invalid envelope is refused, and the error names the field.
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
		{"no payloadType", `{"payload":"e30=","signatures":[{"sig":"AAAA"}]}`, ledger.CodeInvalidEnvelope, "payloadType"},
		{"payloadType is a number", `{"payloadType":1}`, ledger.CodeInvalidEnvelope, "payloadType"},
		{"another payloadType", strings.Replace(dsse, "in-toto", "out", 1), ledger.CodeUnsupportedPayloadType, "payloadType"},
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
		{"a bad certificate", strings.Replace(dsse, `"AAAA"`, `"AAAA","certificate":"AAAA"`, 1), ledger.CodeInvalidEnvelope,
			"signatures[0]"},
		{"certificate is a key",
			strings.Replace(dsse, `"AAAA"`, `"AAAA","certificate":`+
				string(ledgertest.Must(json.Marshal(string(ledgertest.CosignFile("p256.pub"))))), 1), ledger.CodeInvalidEnvelope,
			"signatures[0]"},

		{"another bundle", `{"mediaType":"application/vnd.dev.sigstore.bundle+json;version=0.4","dsseEnvelope":` + dsse +
			`}`, ledger.CodeInvalidEnvelope, "mediaType"},
		{"a bundle without mediaType", `{"dsseEnvelope":` + dsse + `}`, ledger.CodeInvalidEnvelope, "mediaType"},
		{"a bundle of a blob",
			bundle(`"messageSignature":{"messageDigest":{"algorithm":"SHA2_256","digest":"AAAA"},"signature":"AAAA"}`),
			ledger.CodeInvalidEnvelope, "messageSignature"},
		{"an empty bundle", bundle(`"verificationMaterial":{}`), ledger.CodeInvalidEnvelope, "dsseEnvelope"},
		{"a bundle with two signatures",
			bundle(`"dsseEnvelope":` + strings.Replace(dsse, `{"sig":"AAAA"}`, `{"sig":"AAAA"},{"sig":"AAAA"}`, 1)),
			ledger.CodeSeveralSignatures, "dsseEnvelope.signatures"},
		{"a bundle's payload", bundle(`"dsseEnvelope":` + strings.Replace(dsse, "e30=", "*", 1)), ledger.CodeInvalidEnvelope,
			"dsseEnvelope.payload"},
		{"a bundle's certificate", bundle(`"verificationMaterial":{"certificate":{"rawBytes":"AAAA"}},"dsseEnvelope":` +
			dsse), ledger.CodeInvalidEnvelope, "verificationMaterial"},
		{"a certificate without bytes", bundle(`"verificationMaterial":{"certificate":{}},"dsseEnvelope":` + dsse),
			ledger.CodeInvalidEnvelope, "verificationMaterial"},
		{"a bundle and an envelope", bundle(`"dsseEnvelope":` + dsse + `,` + dsse[1:len(dsse)-1]),
			ledger.CodeInvalidEnvelope, "payloadType"},
		{"a bundle and a payload", bundle(`"dsseEnvelope":` + dsse + `,"payload":"e30="`), ledger.CodeInvalidEnvelope,
			"payload"},
		{"a bundle and signatures", bundle(`"dsseEnvelope":` + dsse + `,"signatures":[]`), ledger.CodeInvalidEnvelope,
			"signatures"},
		{"eleven certificates, ten of them in one PEM text",
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
			t.Errorf("%s: got error %v, want %q in it", body, err, want)
		}
	}
	t.Run("cosign's old bundle format", func(t *testing.T) {
		_, err := ParseEnvelope([]byte(`{"base64Signature":"eyJ9","cert":"LS0t"}`))
		ledgertest.WantCode(t, err, ledger.CodeInvalidEnvelope)
		if !strings.Contains(err.Error(), "--new-bundle-format") {
			t.Errorf("the error %q does not mention --new-bundle-format", err)
		}
	})
}

// Unknown members are ignored, because others may extend the formats.
func TestParseEnvelopeOpen(t *testing.T) {
	body := `{"mediaType":"application/vnd.dev.sigstore.bundle+json;version=0.3",
		"verificationMaterial":{"publicKey":{"hint":"our key"},"tlogEntries":[{"logIndex":"1"}],` +
		`"timestampVerificationData":{"rfc3161Timestamps":[]}},
		"dsseEnvelope":{"payloadType":"application/vnd.in-toto+json","payload":"e30","signatures":[{"keyid":"other",` +
		`"sig":"AAAA","extra":[1]}],"more":null}}`
	env, err := ParseEnvelope([]byte(body))
	must.OK(t, err)
	if env.Hint != "our key" || string(env.Payload) != "{}" || len(env.Certificates) != 0 {
		t.Errorf("got %+v", env)
	}
}

// Bundles of all versions have their envelope, key hint and certificates in the same members.
func TestParseEnvelopeBundleVersions(t *testing.T) {
	root := ledgertest.NewRoot()
	leaf := ledgertest.NewCert(root, ledgertest.CIName(), ledgertest.NewP256(), ledgertest.AsSigner)
	raw := func(c *x509.Certificate) string {
		return `{"rawBytes":"` + base64.StdEncoding.EncodeToString(c.Raw) + `"}`
	}
	const dsse = `{"payloadType":"application/vnd.in-toto+json","payload":"e30=","signatures":[{"sig":"AAAA"}]}`
	for _, mediaType := range []string{
		"application/vnd.dev.sigstore.bundle+json;version=0.1", "application/vnd.dev.sigstore.bundle+json;version=0.2",
		"application/vnd.dev.sigstore.bundle+json;version=0.3", "application/vnd.dev.sigstore.bundle.v0.3+json",
	} {
		for material, certificates := range map[string]int{
			`{"publicKey":{"hint":"our key"}}`:                                                          0,
			`{"certificate":` + raw(leaf.Cert) + `}`:                                                    1,
			`{"x509CertificateChain":{"certificates":[` + raw(leaf.Cert) + `,` + raw(root.Cert) + `]}}`: 2,
		} {
			body := []byte(`{"mediaType":"` + mediaType + `","verificationMaterial":` + material +
				`,"dsseEnvelope":` + dsse + `}`)

			env, err := ParseEnvelope(body)
			if err != nil {
				t.Errorf("%s with %s: %v", mediaType, material, err)
				continue
			}
			hinted := env.Hint == "our key"
			if len(env.Certificates) != certificates || hinted != (certificates == 0) || string(env.Payload) != "{}" {
				t.Errorf("%s with %s: got %+v", mediaType, material, env)
			}
			if got := MediaType(body); got != mediaType {
				t.Errorf("MediaType returns %s for %s", got, mediaType)
			}
		}
	}

	if got := MediaType([]byte(dsse)); got != EnvelopeType {
		t.Errorf("MediaType returns %s for an envelope", got)
	}
	if got := MediaType([]byte("tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n")); got != "" {
		t.Errorf("MediaType returns %s for a commit object", got)
	}
}

// Witness adds the certificates to the signature, in base64 of PEM. PEM, and base64 of
// DER, are accepted too.
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
			must.OK(t, err)
			if got.Signer.DN != (identity.DN{CN: "ci", OU: "build", O: "acme"}) || got.Signer.Identity != "idn_root" {
				t.Errorf("got signer %v", got.Signer)
			}
		})
	}
}

// pypiAttestation has the form of PEP 740.
const pypiAttestation = `{"version":1,"verification_material":{"certificate":"AAAA","transparency_entries":[{}]},` +
	`"envelope":{"statement":"e30=","signature":"AAAA"}}`

// What people send by mistake is refused with a sentence that helps.
func TestParseEnvelopePasted(t *testing.T) {
	const dsse = `{"payloadType":"application/vnd.in-toto+json","payload":"e30=","signatures":[{"sig":"AAAA"}]}`
	tests := []struct {
		name, body string
		code       ledger.Code
		want       string
	}{
		{"a statement", statementOf(aboutCommit, anyType, `{}`), ledger.CodeInvalidEnvelope,
			"a statement without a signature"},
		{"JSON Lines", dsse + "\n" + dsse + "\n" + dsse + "\n", ledger.CodeInvalidJSON, "3 JSON documents"},
		{"npm's list", `{"attestations":[{"predicateType":"x","bundle":{}}]}`, ledger.CodeInvalidEnvelope,
			"send the list on its own"},
		{"DSSE with cert", strings.Replace(dsse, `"AAAA"`, `"AAAA","keyid":"","cert":"-----BEGIN"`, 1),
			ledger.CodeInvalidEnvelope, "signatures[0].cert"},
		{"cosign's old bundle", `{"base64Signature":"eyJ9","cert":"LS0t","rekorBundle":{}}`, ledger.CodeInvalidEnvelope,
			"--new-bundle-format"},
		{"cosign's old Rekor bundle", `{"SignedEntryTimestamp":"eyJ9","Payload":{}}`, ledger.CodeInvalidEnvelope,
			"--new-bundle-format"},

		{"an attestation of PyPI", pypiAttestation, ledger.CodeInvalidEnvelope, "Attestation.to_bundle"},
		{"provenance of PyPI", `{"version":1,"attestation_bundles":[{"publisher":{"kind":"GitHub"},"attestations":[` +
			pypiAttestation + `]}]}`, ledger.CodeInvalidEnvelope, "provenance object of PyPI"},
		{"a link from before DSSE", `{"signatures":[{"keyid":"a","sig":"0a"}],"signed":{"_type":"link","name":"build",` +
			`"byproducts":{"return-value":0}}}`, ledger.CodeInvalidEnvelope, "https://in-toto.io/attestation/link/v0.3"},
		{"a layout", `{"signatures":[{"keyid":"a","sig":"0a"}],"signed":{"_type":"layout","steps":[]}}`,
			ledger.CodeInvalidEnvelope, "an in-toto layout"},
		{"a link without a signature", `{"_type":"link","name":"build","materials":{}}`, ledger.CodeInvalidEnvelope,
			"an in-toto link"},
		{"an entry of Rekor", `{"` + strings.Repeat("24296fb24b8ad77a", 5) + `":{"body":"e30=","integratedTime":1,` +
			`"logID":"c0","logIndex":7,"verification":{}}}`, ledger.CodeInvalidEnvelope, "transparency log Rekor"},
		{"an entry as rekor-cli prints it", `{"Attestation":"","Body":{"DSSEObj":{}},"LogIndex":7,"IntegratedTime":1,` +
			`"UUID":"24","LogID":"c0"}`, ledger.CodeInvalidEnvelope, "transparency log Rekor"},
		{"a trusted root", `{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1","tlogs":[],` +
			`"certificateAuthorities":[]}`, ledger.CodeInvalidEnvelope, "trusted-root set"},
		{"provenance v1 without a statement", `{"buildDefinition":{"buildType":"x"},"runDetails":{}}`,
			ledger.CodeInvalidEnvelope, "SLSA provenance v1 without a statement"},
		{"provenance v0.2 without a statement", `{"builder":{"id":""},"buildType":"https://mobyproject.org/buildkit@v1"}`,
			ledger.CodeInvalidEnvelope, "SLSA provenance v0.2 without a statement"},
		{"provenance from buildx", `{"SLSA":{"buildType":"https://mobyproject.org/buildkit@v1"}}`,
			ledger.CodeInvalidEnvelope, "provenance of BuildKit"},
		{"metadata from buildx", `{"buildx.build.provenance":{"buildType":"x"},"containerimage.digest":"sha256:00"}`,
			ledger.CodeInvalidEnvelope, "metadata of a build by buildx"},
		{"a manifest of attestations", `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",` +
			`"config":{},"layers":[{"mediaType":"application/vnd.in-toto+json","annotations":` +
			`{"in-toto.io/predicate-type":"https://slsa.dev/provenance/v0.2"}}]}`, ledger.CodeInvalidEnvelope,
			"cosign download attestation"},
		{"an index", `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`,
			ledger.CodeInvalidEnvelope, "the index of an image"},
		{"a layout of an image", `{"imageLayoutVersion":"1.0.0"}`, ledger.CodeInvalidEnvelope, "oci-layout"},
		{"SPDX", `{"spdxVersion":"SPDX-2.3","SPDXID":"SPDXRef-DOCUMENT","packages":[]}`, ledger.CodeInvalidEnvelope,
			"https://spdx.dev/Document, and sign that: ledgerd attest --statement"},
		{"SPDX 3", `{"@context":"https://spdx.org/rdf/3.0.1/spdx-context.jsonld","@graph":[]}`, ledger.CodeInvalidEnvelope,
			"https://spdx.dev/Document"},
		{"SPDX, tag and value", "SPDXVersion: SPDX-2.3\nDataLicense: CC0-1.0\n", ledger.CodeInvalidJSON, "use JSON"},
		{"CycloneDX", `{"bomFormat":"CycloneDX","specVersion":"1.6","components":[]}`, ledger.CodeInvalidEnvelope,
			"https://cyclonedx.org/bom"},
		{"CycloneDX in XML", `<?xml version="1.0"?><bom xmlns="http://cyclonedx.org/schema/bom/1.6"/>`,
			ledger.CodeInvalidJSON, "CycloneDX XML"},
		{"SARIF", `{"$schema":"https://json.schemastore.org/sarif-2.1.0.json","version":"2.1.0","runs":[]}`,
			ledger.CodeInvalidEnvelope, "https://in-toto.io/attestation/sarif/v0.1"},
		{"OpenVEX", `{"@context":"https://openvex.dev/ns/v0.2.0","statements":[]}`, ledger.CodeInvalidEnvelope,
			"an OpenVEX document"},
		{"JUnit", "<?xml version=\"1.0\"?>\n<testsuites><testsuite name=\"a\"/></testsuites>", ledger.CodeInvalidJSON,
			"--status pass"},
		{"other XML", "\n<html/>", ledger.CodeInvalidJSON, "the document is XML"},
		{"PEM", "-----BEGIN PUBLIC KEY-----\nAAAA\n", ledger.CodeInvalidJSON, "identity add"},
		{"gzip", "\x1f\x8b\x08", ledger.CodeInvalidJSON, "decompress it"},
		{"zip", "PK\x03\x04", ledger.CodeInvalidJSON, "unpack it"},
		{"an envelope that is cut off", dsse[:40], ledger.CodeInvalidJSON, "unexpected end"},
		{"a document that nobody knows", `{"version":1}`, ledger.CodeInvalidEnvelope, "send a DSSE envelope"},
		{"a bundle of another version", `{"mediaType":"application/vnd.dev.sigstore.bundle.v0.9+json"}`,
			ledger.CodeInvalidEnvelope, "unsupported bundle type"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := ParseEnvelope([]byte(test.body))
			ledgertest.WantCode(t, err, test.code)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q in it", err, test.want)
			}
		})
	}
	if _, err := ParseEnvelope([]byte(dsse + "\n")); err != nil {
		t.Errorf("JSON Lines with one line: %v", err)
	}
}

// Members that differ from a known one only in case are refused.
func TestParseEnvelopeWithAnotherCase(t *testing.T) {
	const dsse = `{"payloadType":"application/vnd.in-toto+json","payload":"e30=","signatures":[{"sig":"AAAA"}]}`
	bundle := `{"mediaType":"` + BundleType + `","verificationMaterial":{"publicKey":{"hint":"x"}},` +
		`"dsseEnvelope":` + dsse + `}`
	tests := []struct{ body, old, new, field string }{
		{dsse, `"payload":`, `"Payload":"","payload":`, "payload"},
		{dsse, `"payloadType"`, `"payloadtype":"","payloadType"`, "payloadType"},
		{dsse, `"sig"`, `"ſig":"","sig"`, "signatures[0].sig"},
		{bundle, `"payload":`, `"PAYLOAD":"","payload":`, "dsseEnvelope.payload"},
		{bundle, `"mediaType"`, `"mediatype":"","mediaType"`, "mediaType"},
		{bundle, `"hint"`, `"Hint":"","hint"`, "verificationMaterial.publicKey.hint"},
		{bundle, `"dsseEnvelope"`, `"DSSEEnvelope":{},"dsseEnvelope"`, "dsseEnvelope"},
	}
	for _, test := range tests {
		_, err := ParseEnvelope([]byte(strings.Replace(test.body, test.old, test.new, 1)))
		ledgertest.WantCode(t, err, ledger.CodeInvalidEnvelope)
		ledgertest.WantField(t, err, test.field)
	}
}

// The payload may be large, but not what no signature covers.
func TestParseEnvelopeUnsignedMembers(t *testing.T) {
	envelope := func(payload, more int) string {
		return `{"payloadType":"application/vnd.in-toto+json","payload":"` + strings.Repeat("AAAA", payload/4) +
			`","signatures":[{"sig":"AAAA"}],"more":"` + strings.Repeat("x", more) + `"}`
	}
	rest := len(envelope(0, 0)) - len(`""`)
	for _, escape := range []bool{false, true} {
		for over, code := range map[int]ledger.Code{0: "", 1: ledger.CodeInvalidEnvelope} {
			body := envelope(1<<20, maxUnsigned-rest+over)
			if escape { // the escapes are part of the payload
				body = strings.ReplaceAll(body, "AAAA\",\"", `AAA\u0041","`)
			}
			_, err := ParseEnvelope([]byte(body))
			ledgertest.WantCode(t, err, code)
		}
	}
}
