package e2e_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/passkey"
)

// A checkedOrg is an org whose log is signed.
type checkedOrg struct {
	*org
	admin string // an admin token
	api   *client.Client
}

func newCheckedOrg(t *testing.T) *checkedOrg {
	t.Helper()
	o := &checkedOrg{org: newOrg(t)}
	o.admin = o.ledgerd("token", "create", "--org", "acme", "--name", "admin", "--scope", "admin")
	o.env = append(o.env, "LEDGERD_BASE_URL=https://ledger.acme.example")
	o.start()
	o.api = must.Get(client.New(o.url, client.Options{Token: o.admin}))(t)
	return o
}

// records trusts a key or a root, and records an envelope.
func (o *checkedOrg) records(trusted identity.NewIdentity, envelope []byte) ledger.AttestationRecord {
	o.t.Helper()
	if trusted.Kind == "" {
		trusted.Kind = identity.KeyIdentity
	}
	_, err := o.api.AddIdentity(o.t.Context(), "acme", trusted)
	must.OK(o.t, err)
	record, _, err := o.api.Record(o.t.Context(), "acme", "api", envelope)
	must.OK(o.t, err)
	return record
}

// settle waits until a checkpoint covers all events.
func (o *checkedOrg) settle() {
	o.t.Helper()
	waitFor(o.t, "the checkpoint of the log", 10*time.Second, func() bool {
		l, err := o.api.Log(o.t.Context(), "acme")
		return err == nil && l.Size == l.Events
	})
}

// pathOf returns the path of the page of an attestation.
func pathOf(a ledger.AttestationRecord) string { return "/orgs/acme/repos/api/attestations/" + a.ID }

// statementOf returns a statement with a result for test:go.
func statementOf(t *testing.T, run string) []byte {
	t.Helper()
	payload, err := attestation.NewStatement("git+https://git.example/acme/api", fmt.Sprintf("%040x", 7),
		attestation.ResultPredicate{Predicate: "test:go", Result: ledger.Result{Status: ledger.Pass, DurationMS: 12},
			Annotations: map[string]string{"run": run}})
	must.OK(t, err)
	return payload
}

// signedDSSE returns an envelope of a payload with a signature that sign makes of its PAE.
func signedDSSE(t *testing.T, payload []byte, sign func(pae []byte) ([]byte, error)) []byte {
	t.Helper()
	sig, err := sign(attestation.PAE(attestation.StatementType, payload))
	must.OK(t, err)
	encode := base64.StdEncoding.EncodeToString
	return fmt.Appendf(nil, `{"payloadType":%q,"payload":%q,"signatures":[{"sig":%q}]}`, attestation.StatementType,
		encode(payload), encode(sig))
}

// run runs the corruption check on the visitor's page. It returns the steps that failed, those
// that were not checked, marked with a question mark, and what the page says in the end.
func (v *visitor) runCheck() (steps []string, summary string) {
	v.t.Helper()
	v.sees("Run the check") // once the script is loaded
	v.click("button", "Run the check")
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		summary = evaluate[string](v, "document.querySelector('#corruption-check [role=status]').textContent")
		if summary != "" && summary != "Checking…" {
			break
		}
		if time.Now().After(deadline) {
			v.t.Fatalf("the check does not end: %s", v.read())
		}
	}
	return evaluate[[]string](v, `[...document.querySelectorAll('.checked > li')].map((li) => {
		const outcome = li.querySelector('.status').textContent, title = li.querySelector('strong').textContent
		return outcome === 'failed' ? title : outcome === 'not checked' ? title + '?' : ''
	}).filter(Boolean)`), summary
}

// The browser verifies every kind of signature that the ledger accepts.
func TestWebCorruptionCheckVerifiesEveryKey(t *testing.T) {
	testenv.Need(t, "chromium")
	t.Parallel()
	o := newCheckedOrg(t)
	v := newBrowser(t).visitor(t, o.url)
	v.signIn(o.admin)

	for name, record := range o.recordEveryKey() {
		o.settle()
		v.open(pathOf(record))
		steps, summary := v.runCheck()
		algorithm, _, _ := strings.Cut(name, ", ")
		if len(steps) != 0 || summary != "All 7 steps passed: nothing is corrupted." ||
			!strings.Contains(v.read(), "Algorithm "+algorithm+" Event") {
			t.Errorf("%s: %s %s\n%s", name, steps, summary, v.read())
		}
	}
	v.checkConsole(t)
}

// recordEveryKey records an attestation with each kind of key and envelope, by what the page
// calls the algorithm.
func (o *checkedOrg) recordEveryKey() map[string]ledger.AttestationRecord {
	records := make(map[string]ledger.AttestationRecord)
	for name, files := range map[string][2]string{
		"ECDSA P-256 with SHA-256, bundle by cosign": {"cosign/p256.pub", "cosign/v3-p256.bundle.json"},
		"ECDSA P-256 with SHA-256, raw":              {"tools/ec-P-256.pub", "tools/webcrypto-p1363-nokeyid.json"},
		"RSA-PSS with SHA-256, in-toto":              {"tools/rsa-2048.pub", "tools/intoto-go-rsa-2048.json"},
		"Ed25519, witness":                           {"tools/ed25519.pub", "tools/wit-ed.json"},
	} {
		key := must.Read(o.t, filepath.Join("../ledger/testdata", files[0]))
		envelope := must.Read(o.t, filepath.Join("../ledger/testdata", files[1]))
		dn := "cn=" + filepath.Base(files[0]) + ",ou=x,o=acme"
		records[name] = o.records(identity.NewIdentity{PEM: string(key), DN: dn}, envelope)
	}

	for name, curve := range map[string]elliptic.Curve{
		"ECDSA P-256 with SHA-256, ledgerd": elliptic.P256(), "ECDSA P-384 with SHA-384": elliptic.P384(),
		"ECDSA P-521 with SHA-512": elliptic.P521(),
	} {
		key := must.Get(ecdsa.GenerateKey(curve, rand.Reader))(o.t)
		records[name] = o.signs(name, key)
	}
	key := must.Get(rsa.GenerateKey(rand.Reader, 2048))(o.t)
	records["RSA PKCS #1 v1.5 with SHA-256"] = o.signs("rsa", key)

	public, private, err := ed25519.GenerateKey(nil)
	must.OK(o.t, err)
	envelope := signedDSSE(o.t, statementOf(o.t, "ph"), func(pae []byte) ([]byte, error) {
		digest := sha512.Sum512(pae)
		return private.Sign(nil, digest[:], &ed25519.Options{Hash: crypto.SHA512})
	})
	text := must.PublicPEM(o.t, public)
	records["Ed25519ph"] = o.records(identity.NewIdentity{PEM: text, DN: "cn=ph,ou=x,o=acme"}, envelope)
	records["ECDSA P-256 with SHA-256, certificate"] = o.signsWithCertificate()
	return records
}

// signs records a statement that is signed with a key.
func (o *checkedOrg) signs(name string, key crypto.Signer) ledger.AttestationRecord {
	o.t.Helper()
	envelope := must.Get(attestation.SignDSSE(key, statementOf(o.t, name)))(o.t)
	return o.records(identity.NewIdentity{PEM: must.PublicPEM(o.t, key.Public()),
		DN: "cn=" + strings.ReplaceAll(name, ",", "") + ",ou=x,o=acme"}, envelope)
}

// signsWithCertificate records a bundle with a certificate under a root that acme trusts.
func (o *checkedOrg) signsWithCertificate() ledger.AttestationRecord {
	o.t.Helper()
	caKey := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(o.t)
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(o.t)
	template := func(cn string) *x509.Certificate {
		return &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
			NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true,
			Subject: pkix.Name{CommonName: cn, OrganizationalUnit: []string{"build"}, Organization: []string{"acme"}}}
	}

	ca, leaf := template("root"), template("certified")
	ca.IsCA, ca.KeyUsage = true, x509.KeyUsageCertSign
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}
	caDER := must.Get(x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey))(o.t)
	leafDER := must.Get(x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), caKey))(o.t)
	cert := must.Get(x509.ParseCertificate(leafDER))(o.t)
	bundle, err := attestation.SignBundle(key, []*x509.Certificate{cert}, statementOf(o.t, "certificate"))
	must.OK(o.t, err)
	text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER}))
	return o.records(identity.NewIdentity{Kind: identity.RootIdentity, PEM: text}, bundle)
}

// TestWebCorruptionCheckFindsTampering changes each part that the check fetches.
func TestWebCorruptionCheckFindsTampering(t *testing.T) {
	testenv.Need(t, "chromium")
	t.Parallel()
	o := newCheckedOrg(t)
	record, other := o.tampered()
	p := newTamperer(t, o.url)
	v := newBrowser(t).visitor(t, p.url)
	v.signIn(o.admin)
	for name, test := range o.tamperings(record, other) {
		p.part = test.part
		if !strings.HasPrefix(p.part, "/") {
			p.part = "/" + record.ID
		}
		p.edit = func(_ *http.Response, body []byte) []byte {
			edited := test.edit(string(body))
			if edited == string(body) {
				t.Errorf("%s: nothing was changed", name)
			}
			return []byte(edited)
		}
		v.open(pathOf(record))
		steps, summary := v.runCheck()
		wantSummary := "Corrupted. Failed: "
		if !slices.ContainsFunc(test.steps, func(s string) bool { return !strings.HasSuffix(s, "?") }) {
			wantSummary = "Incomplete. Nothing failed, but not checked: "
		}
		if !slices.Equal(steps, test.steps) || !strings.HasPrefix(summary, wantSummary) {
			t.Errorf("%s: failed %q, want %q: %s", name, steps, test.steps, summary)
		}
	}
	v.checkConsole(t)

	p.edit = nil
	v.open(pathOf(record))
	if steps, summary := v.runCheck(); len(steps) != 0 || !strings.HasPrefix(summary, "All 7") {
		t.Errorf("without tampering: %q %s", steps, summary)
	}
}

// The assertion of a passkey is compared with the digest on the page, and this with the one in the event,
// which the event here does not have.
func TestWebCorruptionCheckOfAPasskey(t *testing.T) {
	testenv.Need(t, "chromium")
	t.Parallel()
	o := newCheckedOrg(t)
	record := o.signs("ada", must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t))
	o.settle()
	p := newTamperer(t, o.url)
	v := newBrowser(t).visitor(t, p.url)
	v.signIn(o.admin)

	for digest, want := range map[string][]string{
		"":                                 nil, // no passkey
		passkey.Digest([]byte("{}")):       {"Event"},
		passkey.Digest([]byte("tampered")): {"Passkey", "Event"},
	} {
		p.edit = func(r *http.Response, body []byte) []byte {
			if strings.HasSuffix(r.Request.URL.Path, "/assertion") {
				r.StatusCode = http.StatusOK
				return []byte("{}")
			}

			box := `id="corruption-check"`
			return bytes.Replace(body, []byte(box), fmt.Appendf(nil, "%s data-assertion-digest=%q", box, digest), 1)
		}
		v.open(pathOf(record))
		if steps, summary := v.runCheck(); !slices.Equal(steps, want) {
			t.Errorf("with the digest %q: failed %q, want %q: %s", digest, steps, want, summary)
		}
	}
}
