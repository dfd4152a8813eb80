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
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/client"
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
	var err error
	o.api, err = client.New(o.url, client.Options{Token: o.admin})
	check(t, err)
	return o
}

// records trusts a key or a root, and records an envelope.
func (o *checkedOrg) records(trusted identity.NewIdentity, envelope []byte) ledger.AttestationRecord {
	o.t.Helper()
	if trusted.Kind == "" {
		trusted.Kind = identity.KeyIdentity
	}
	_, err := o.api.AddIdentity(o.t.Context(), "acme", trusted)
	check(o.t, err)
	record, _, err := o.api.Record(o.t.Context(), "acme", "api", envelope)
	check(o.t, err)
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
	check(t, err)
	return payload
}

func publicPEM(t *testing.T, key crypto.PublicKey) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	check(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// signedDSSE returns an envelope of a payload with a signature that sign makes of its PAE.
func signedDSSE(t *testing.T, payload []byte, sign func(pae []byte) ([]byte, error)) []byte {
	t.Helper()
	sig, err := sign(attestation.PAE(attestation.StatementType, payload))
	check(t, err)
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
	need(t, "chromium")
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
		key, err := os.ReadFile(filepath.Join("../ledger/testdata", files[0]))
		check(o.t, err)
		envelope, err := os.ReadFile(filepath.Join("../ledger/testdata", files[1]))
		check(o.t, err)
		dn := "cn=" + filepath.Base(files[0]) + ",ou=x,o=acme"
		records[name] = o.records(identity.NewIdentity{PEM: string(key), DN: dn}, envelope)
	}

	for name, curve := range map[string]elliptic.Curve{
		"ECDSA P-256 with SHA-256, ledgerd": elliptic.P256(), "ECDSA P-384 with SHA-384": elliptic.P384(),
		"ECDSA P-521 with SHA-512": elliptic.P521(),
	} {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		check(o.t, err)
		records[name] = o.signs(name, key)
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	check(o.t, err)
	records["RSA PKCS #1 v1.5 with SHA-256"] = o.signs("rsa", key)

	public, private, err := ed25519.GenerateKey(nil)
	check(o.t, err)
	envelope := signedDSSE(o.t, statementOf(o.t, "ph"), func(pae []byte) ([]byte, error) {
		digest := sha512.Sum512(pae)
		return private.Sign(nil, digest[:], &ed25519.Options{Hash: crypto.SHA512})
	})
	records["Ed25519ph"] = o.records(identity.NewIdentity{PEM: publicPEM(o.t, public), DN: "cn=ph,ou=x,o=acme"}, envelope)
	records["ECDSA P-256 with SHA-256, certificate"] = o.signsWithCertificate()
	return records
}

// signs records a statement that is signed with a key.
func (o *checkedOrg) signs(name string, key crypto.Signer) ledger.AttestationRecord {
	o.t.Helper()
	envelope, err := attestation.SignDSSE(key, statementOf(o.t, name))
	check(o.t, err)
	return o.records(identity.NewIdentity{PEM: publicPEM(o.t, key.Public()),
		DN: "cn=" + strings.ReplaceAll(name, ",", "") + ",ou=x,o=acme"}, envelope)
}

// signsWithCertificate records a bundle with a certificate under a root that acme trusts.
func (o *checkedOrg) signsWithCertificate() ledger.AttestationRecord {
	o.t.Helper()
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(o.t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(o.t, err)
	template := func(cn string) *x509.Certificate {
		return &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
			NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true,
			Subject: pkix.Name{CommonName: cn, OrganizationalUnit: []string{"build"}, Organization: []string{"acme"}}}
	}

	ca, leaf := template("root"), template("certified")
	ca.IsCA, ca.KeyUsage = true, x509.KeyUsageCertSign
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	check(o.t, err)
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), caKey)
	check(o.t, err)
	cert, err := x509.ParseCertificate(leafDER)
	check(o.t, err)
	bundle, err := attestation.SignBundle(key, []*x509.Certificate{cert}, statementOf(o.t, "certificate"))
	check(o.t, err)
	text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER}))
	return o.records(identity.NewIdentity{Kind: identity.RootIdentity, PEM: text}, bundle)
}

// A tamperer is a proxy in front of the server that changes one reply.
type tamperer struct {
	url  string
	part string // the end of the path whose reply is changed
	edit func(*http.Response, []byte) []byte
}

func newTamperer(t *testing.T, server string) *tamperer {
	t.Helper()
	target, err := url.Parse(server)
	check(t, err)
	p := new(tamperer)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
			r.Out.Header.Set("Accept-Encoding", "identity")
		},
		ModifyResponse: func(r *http.Response) error {
			if p.edit == nil || !strings.HasSuffix(r.Request.URL.Path, p.part) {
				return nil
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return err
			}
			body = p.edit(r, body)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			r.Header.Set("Content-Length", fmt.Sprint(len(body)))
			return nil
		},
	}
	server2 := httptest.NewServer(proxy)
	t.Cleanup(server2.Close)
	p.url = server2.URL
	return p
}

// A tampering is a change of one reply, and the steps that find it. A step with a question mark
// is not checked.
type tampering struct {
	part  string
	edit  func(string) string
	steps []string
}

// TestWebCorruptionCheckFindsTampering changes each part that the check fetches.
func TestWebCorruptionCheckFindsTampering(t *testing.T) {
	need(t, "chromium")
	t.Parallel()
	o := newCheckedOrg(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	for range 5 {
		_, err := o.attest()
		check(t, err)
	}
	record := o.signs("ada", key)
	other := o.signs("bob", must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t))
	for range 6 {
		_, err := o.attest()
		check(t, err)
	}
	o.settle()

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
	need(t, "chromium")
	t.Parallel()
	o := newCheckedOrg(t)
	record := o.signs("ada", must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t))
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

func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		check(t, err)
		return value
	}
}

// replaceOnce returns an edit that replaces a text once.
func replaceOnce(old, replacement string) func(string) string {
	return func(s string) string { return strings.Replace(s, old, replacement, 1) }
}

// line returns an edit of a line, counted from 0.
func line(n int, edit func(string) string) func(string) string {
	return func(s string) string {
		lines := strings.Split(s, "\n")
		lines[n] = edit(lines[n])
		return strings.Join(lines, "\n")
	}
}

// flipped returns base64 with a bit of a byte changed.
func flipped(text string, at int) string {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) == 0 {
		return "invalid " + text
	}
	raw[(at+len(raw))%len(raw)] ^= 1
	return base64.StdEncoding.EncodeToString(raw)
}

// inJSON returns an edit of a string in a JSON object.
func inJSON(name string, edit func(string) string) func(string) string {
	return func(s string) string {
		var object map[string]any
		if err := json.Unmarshal([]byte(s), &object); err != nil {
			return "invalid: " + err.Error()
		}
		if edit == nil {
			delete(object, name)
		} else {
			object[name] = edit(fmt.Sprint(object[name]))
		}
		edited, err := json.Marshal(object)
		if err != nil {
			return "invalid: " + err.Error()
		}
		return string(edited)
	}
}

// inOpening returns an edit of the opening of the leaf in a proof.
func inOpening(edit func(string) string) func(string) string {
	return line(1, func(s string) string {
		raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(s, "extra "))
		if err != nil {
			return "invalid " + s
		}
		return "extra " + base64.StdEncoding.EncodeToString([]byte(edit(string(raw))))
	})
}

// inCheckpoint returns an edit of a line of the checkpoint in a proof.
func inCheckpoint(n int, edit func(string) string) func(string) string {
	return func(s string) string {
		head, note, _ := strings.Cut(s, "\n\n")
		return head + "\n\n" + line(n, edit)(note)
	}
}

// tamperings returns changes of all that the check of a record fetches. other is another
// record.
func (o *checkedOrg) tamperings(record, other ledger.AttestationRecord) map[string]tampering {
	t, ctx := o.t, o.t.Context()
	flip := func(at int) func(string) string { return func(s string) string { return flipped(s, at) } }
	instead := func(body []byte, err error) func(string) string {
		check(t, err)
		return func(string) string { return string(body) }
	}
	otherKey := publicPEM(t, o.key.Public())
	return map[string]tampering{
		"payload": {"/envelope", inJSON("payload", flip(-9)), []string{"Payload", "Signature", "Event"}},
		"payload type": {"/envelope", inJSON("payloadType", func(s string) string { return s + "2" }),
			[]string{"Signature", "Event"}},
		"signature": {"/envelope", replaceOnce(`"sig":"`+signatureOf(t, o, record), `"sig":"`+
			flipped(signatureOf(t, o, record), -3)), []string{"Signature", "Event"}},
		"no signature": {"/envelope", inJSON("signatures", nil), []string{"Payload", "Signature?", "Event"}},
		"no JSON":      {"/envelope", replaceOnce("{", "["), []string{"Payload", "Signature?", "Event"}},
		"another envelope": {"/envelope", instead(o.api.Envelope(ctx, "acme", "api", other.ID)),
			[]string{"Payload", "Signature", "Event"}},

		"another key": {"/key", instead([]byte(otherKey), nil), []string{"Key", "Signature"}},
		"no key":      {"/key", replaceOnce("PUBLIC", "PRIVATE"), []string{"Key", "Signature?"}},

		"time of the event":      {"/event", replaceOnce(`"timestamp":"2`, `"timestamp":"1`), []string{"Leaf"}},
		"predicate of the event": {"/event", replaceOnce("test:go", "test:c"), []string{"Event", "Leaf"}},
		"commit of the event":    {"/event", replaceOnce(record.Commit, other.ID), []string{"Event", "Leaf"}},
		"no event":               {"/event", replaceOnce("{", ""), []string{"Event", "Leaf"}},
		"space in the event":     {"/event", replaceOnce(",", ", "), []string{"Leaf"}},
		"another event":          {"/event", instead(o.api.Event(ctx, "acme", other.Event)), []string{"Event", "Leaf"}},

		"salt":      {"/proof", inOpening(inJSON("salt", func(s string) string { return flipHex(s) })), []string{"Leaf"}},
		"no salt":   {"/proof", inOpening(inJSON("salt", nil)), []string{"Leaf?"}},
		"bad salt":  {"/proof", inOpening(inJSON("salt", func(s string) string { return s[2:] })), []string{"Leaf"}},
		"leaf":      {"/proof", inOpening(replaceOnce(`\"hash\":\"`, `\"hash\":\"0`)), []string{"Leaf", "Inclusion"}},
		"leaf time": {"/proof", inOpening(replaceOnce(`\"at\":\"2`, `\"at\":\"1`)), []string{"Inclusion"}},
		"no leaf":   {"/proof", inOpening(inJSON("record", nil)), []string{"Leaf", "Inclusion?", "Checkpoint?"}},
		"header":    {"/proof", replaceOnce("@v1", "@v2"), []string{"Leaf", "Inclusion?", "Checkpoint?"}},
		"index": {"/proof", line(2, func(s string) string { return s[:len(s)-1] + string(s[len(s)-1]^1) }),
			[]string{"Inclusion"}},
		"index out of range": {"/proof", line(2, func(string) string { return "index 999" }), []string{"Inclusion"}},
		"hash of the path":   {"/proof", line(3, flip(5)), []string{"Inclusion"}},
		"hash removed":       {"/proof", func(s string) string { return dropLine(s, 3) }, []string{"Inclusion"}},
		"hash added":         {"/proof", line(3, func(s string) string { return s + "\n" + s }), []string{"Inclusion"}},
		"another proof": {"/proof", instead(o.api.EventProof(ctx, "acme", other.Event)),
			[]string{"Leaf"}},

		"root": {"/proof", inCheckpoint(2, flip(0)), []string{"Inclusion", "Checkpoint"}},
		"size": {"/proof", inCheckpoint(1, func(s string) string { return s + "0" }),
			[]string{"Inclusion", "Checkpoint"}},
		"origin": {"/proof", inCheckpoint(0, func(s string) string { return "x" + s }), []string{"Checkpoint"}},
		"epoch":  {"/proof", inCheckpoint(0, func(s string) string { return s + "/2" }), []string{"Checkpoint?"}},
		"more": {"/proof", inCheckpoint(2, func(s string) string { return s + "\nmore" }),
			[]string{"Inclusion", "Checkpoint?"}},
		"sig log": {"/proof", inCheckpoint(4, flipLast), []string{"Checkpoint"}},
		"key ID":  {"/proof", inCheckpoint(4, flipKeyID), []string{"Checkpoint"}},
		"no sig":  {"/proof", inCheckpoint(4, func(string) string { return "" }), []string{"Checkpoint"}},

		"digest on the page": {"page", replaceOnce(`data-payload-digest="sha256:`, `data-payload-digest="sha256:0`),
			[]string{"Payload", "Event"}},
		"key of the log":    {"page", replaceOnce(`data-log-key="`, `data-log-key="x`), []string{"Checkpoint"}},
		"no key of the log": {"page", replaceOnce(`data-log-key="`, `data-x="`), []string{"Checkpoint?"}},
	}
}

// signatureOf returns the signature in an envelope, in base64.
func signatureOf(t *testing.T, o *checkedOrg, record ledger.AttestationRecord) string {
	t.Helper()
	body, err := o.api.Envelope(t.Context(), "acme", "api", record.ID)
	check(t, err)
	var envelope struct {
		Signatures []struct {
			Sig string `json:"sig"`
		} `json:"signatures"`
	}
	check(t, json.Unmarshal(body, &envelope))
	return envelope.Signatures[0].Sig
}

func flipHex(s string) string {
	if s[0] == '0' {
		return "1" + s[1:]
	}
	return "0" + s[1:]
}

func dropLine(s string, n int) string {
	return strings.Join(slices.Delete(strings.Split(s, "\n"), n, n+1), "\n")
}

// flipLast changes the signature in a line of a note, and flipKeyID the ID of its key.
func flipLast(s string) string {
	at := strings.LastIndex(s, " ")
	return s[:at+1] + flipped(s[at+1:], -1)
}

func flipKeyID(s string) string {
	at := strings.LastIndex(s, " ")
	return s[:at+1] + flipped(s[at+1:], 0)
}
