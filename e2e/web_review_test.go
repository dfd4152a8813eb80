package e2e_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/lineage"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

const annDN = "cn=ann,ou=people-dev,o=acme"

// signInAnn signs the visitor in as the member ann of acme, as after a sign-in with a provider.
func (v *visitor) signInAnn(o *org, authTime time.Time) {
	v.t.Helper()
	ctx := v.t.Context()
	db, err := store.Open(ctx, o.database, store.Options{Providers: storetest.Providers()})
	must.OK(v.t, err)
	defer db.Close()
	account := member.Account{Issuer: "https://idp.example", Subject: "ann", AuthTime: ledger.TimeOf(authTime)}
	_, err = db.AddMember(ctx, "acme", member.NewMember{Issuer: account.Issuer, Subject: account.Subject, DN: annDN,
		Role: member.Contributor})
	if e, ok := err.(*ledger.Error); err != nil && (!ok || e.Code != ledger.CodeAlreadyExists) {
		v.t.Fatal(err)
	}
	session := rand.Text()
	_, err = db.SignInMember(ctx, "acme", account, sha256.Sum256([]byte("state "+session)), sha256.Sum256([]byte(session)),
		ledger.TimeOf(time.Now().Add(time.Hour)))
	must.OK(v.t, err)
	v.open("/login")
	evaluate[string](v, "document.cookie = "+quote("ledgerd="+session+"; path=/"))
}

// In a browser, a member sees the statement and signs it, and the commit reaches its next state.
// Other tools can verify the attestation.
func TestReviewInTheBrowser(t *testing.T) {
	testenv.Need(t, "chromium")
	t.Parallel()
	o := newCheckedOrg(t)
	sha := strings.Repeat("a", 40)
	page := "/orgs/acme/repos/api/commits/" + sha
	root := o.ledgerd("identity", "people-ca", "create", "--org", "acme", "-o", "json")
	_, _, err := o.api.Register(t.Context(), "acme", "api", sha,
		ledger.Registration{Branch: "feature", Message: "Limit orders", Author: ledger.Author{Name: "Bob"}})
	must.OK(t, err)

	v := newBrowser(t).visitor(t, o.url)
	v.signInAnn(o.org, time.Now())
	v.open(page)
	v.sees("Approve", "Request changes")
	v.fill("Comment", "Looks <good>\n„fine“ \U0001f44d")
	v.click("button", "Approve")
	v.sees("This is what you sign", "Org acme", "Repo api", "Commit "+sha,
		"Base none: the review is about this commit alone", "Tree not known",
		"Verdict Approve (pass) (review:code)", "Comment Looks <good> „fine“ \U0001f44d", "Nonce ")
	v.click("button", "Confirm")
	v.sees("Recorded: review:code pass", annDN)

	// If the key is lost, the browser creates another. Members can also request changes.
	first := keyOfReview(t, o.api, sha)
	v.open(page)
	evaluate[string](v, `(indexedDB.deleteDatabase('ledgerd-review'), '')`)
	v.open(page)
	v.sees("Request changes")
	v.click("button", "Request changes")
	v.sees("Verdict Request changes (fail)", "Comment none")
	v.click("button", "Confirm")
	v.sees("Recorded: review:code fail")
	if second := keyOfReview(t, o.api, sha); second == first {
		t.Error("the key is the same after the browser has lost it")
	}
	v.open(page)
	v.sees("Request changes")
	v.click("button", "Approve")
	v.sees("This is what you sign")
	v.click("button", "Cancel")
	v.sees("Nothing was signed.")
	v.checkConsole(t)

	t.Run("openssl", func(t *testing.T) { verifyWithOpenSSL(t, o.api, sha, root) })
	t.Run("go-securesystemslib", func(t *testing.T) { verifyWithDSSE(t, o.api, sha) })
	t.Run("cosign", func(t *testing.T) { verifyWithCosign(t, o.api, sha) })
}

// A member sees the commits that a review is about before it is signed.
func TestReviewInTheBrowserListsItsCommits(t *testing.T) {
	testenv.Need(t, "chromium")
	t.Parallel()
	o := newCheckedOrg(t)
	o.ledgerd("identity", "people-ca", "create", "--org", "acme")
	base, baseObject := storetest.Object(1, "Max", 1)
	inner, innerObject := storetest.ObjectOn(base, 2, "Tom", 2)
	head, headObject := storetest.ObjectOn(inner, 3, "&lt;Tim", 3)
	for sha, n := range map[string]ledger.Registration{
		base: {Branch: "main", Object: baseObject}, head: {Branch: "feature", Object: headObject},
	} {
		_, _, err := o.api.Register(t.Context(), "acme", "api", sha, n)
		must.OK(t, err)
	}
	_, err := o.api.AddObjects(t.Context(), "acme", "api",
		lineage.Objects{Objects: []lineage.Object{{Commit: inner, Object: innerObject}}})
	must.OK(t, err)

	v := newBrowser(t).visitor(t, o.url)
	v.signInAnn(o.org, time.Now())
	v.open("/orgs/acme/repos/api/commits/" + head)
	v.sees("Approve")
	v.click("button", "Approve")
	v.sees("Base "+base+" commit 1 (Max), the merge base with main",
		head[:12]+" commit 3 (&lt;Tim)", inner[:12]+" commit 2 (Tom)")
	v.click("button", "Confirm")
	v.sees("Recorded: review:code pass")
	v.checkConsole(t)
}

// After more than 15 minutes, the page asks to sign in again. Without scripts, it says what to do.
func TestReviewAsksToSignInAgain(t *testing.T) {
	testenv.Need(t, "chromium")
	t.Parallel()
	o := newCheckedOrg(t)
	sha := strings.Repeat("a", 40)
	page := "/orgs/acme/repos/api/commits/" + sha
	o.ledgerd("identity", "people-ca", "create", "--org", "acme")
	_, _, err := o.api.Register(t.Context(), "acme", "api", sha, ledger.Registration{Branch: "feature"})
	must.OK(t, err)
	v := newBrowser(t).visitor(t, o.url)
	v.signInAnn(o.org, time.Now().Add(-16*time.Minute))
	v.open(page)
	v.sees("Request changes") // the script shows it
	v.click("button", "Approve")
	v.sees("you must have signed in during the last 15 minutes", "Sign in again")
	// Where the link leads, TestPersonSignsInAndApproves follows.

	v.disableScript()
	v.open(page)
	v.sees("scripts are off", "ledgerd review approve acme/api --commit aaaaaaaaaaaa --key me.key")
	if strings.Contains(v.read(), "Request changes") {
		t.Error("without scripts, the page has a button that does nothing")
	}
}

// The parts of pages that only members see are accessible, too: the form, the statement, and the
// list of waiting commits.
func TestWebReviewIsAccessible(t *testing.T) {
	testenv.Need(t, "chromium")
	t.Parallel()
	axe := readAxe(t)
	o := newCheckedOrg(t)
	sha := strings.Repeat("a", 40)
	o.ledgerd("identity", "people-ca", "create", "--org", "acme")
	o.requireReviews("threshold: 1")
	o.attested(sha, "Limit")
	v := newBrowser(t).visitor(t, o.url)
	v.signInAnn(o.org, time.Now())
	v.open("/orgs/acme")
	v.sees("Waiting for your review")
	v.isAccessible(axe)

	v.open("/orgs/acme/repos/api/commits/" + sha)
	v.sees("Request changes")
	v.isAccessible(axe)
	v.fill("Comment", "Looks good "+strings.Repeat("longer", 40))
	v.click("button", "Approve")
	v.sees("This is what you sign", "As "+annDN)
	v.unfold("Statement")
	v.isAccessible(axe)
	v.click("button", "Confirm")
	v.sees("Recorded: ")
	v.isAccessible(axe)
}

// latestReview returns the newest review of a commit.
func latestReview(t *testing.T, api *client.Client, sha string) ledger.AttestationRecord {
	t.Helper()
	list, err := api.AttestationsPage(t.Context(), "acme", "api",
		client.AttestationFilter{Commit: sha, Predicate: "review:code", Verification: true}, client.Query{Limit: 1})
	must.OK(t, err)
	if len(list.Data) != 1 {
		t.Fatal("no review")
	}
	return list.Data[0]
}

func keyOfReview(t *testing.T, api *client.Client, sha string) string {
	t.Helper()
	return fmt.Sprint(latestReview(t, api, sha).Verification.Key)
}

// verifyWithOpenSSL runs the commands of docs/reviews.md.
func verifyWithOpenSSL(t *testing.T, api *client.Client, sha, root string) {
	testenv.Need(t, "openssl", "python3")
	var ca identity.Identity
	must.OK(t, json.Unmarshal([]byte(root), &ca))
	envelope := must.Get(api.Envelope(t.Context(), "acme", "api", latestReview(t, api, sha).ID))(t)
	folder := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(folder, "people-ca.pem"), []byte(ca.PEM), 0o600))
	must.OK(t, os.WriteFile(filepath.Join(folder, "review.json"), envelope, 0o600))

	docs := must.Read(t, "../docs/reviews.md")
	script := regexp.MustCompile("(?s)```sh verify\n(.*?)```").FindSubmatch(docs)
	if script == nil {
		t.Fatal("docs/reviews.md has no commands")
	}
	run := func() (string, error) {
		command := exec.Command("sh", "-euc", string(script[1]))
		command.Dir = folder
		out, err := command.CombinedOutput()
		return string(out), err
	}
	out, err := run()
	if err != nil || !strings.Contains(out, "certificate.pem: OK") || !strings.Contains(out, "Verified OK") ||
		!strings.Contains(out, "for this statement") {
		t.Fatalf("%v: %s", err, out)
	}

	// The commands find a statement that was changed.
	changed := strings.Replace(string(envelope), `"payload":"eyJ`, `"payload":"IHsi`, 1)
	must.OK(t, os.WriteFile(filepath.Join(folder, "review.json"), []byte(changed), 0o600))
	if out, err := run(); err == nil {
		t.Errorf("the commands accept another statement: %s", out)
	}
}

// A reviewBundle is the part of a review's Sigstore bundle that other tools verify.
type reviewBundle struct {
	Material struct {
		Certificate struct {
			RawBytes []byte `json:"rawBytes"`
		} `json:"certificate"`
	} `json:"verificationMaterial"`
	DSSE dsse.Envelope `json:"dsseEnvelope"`
}

// readBundle returns the bundle of the latest review of a commit, and its certificate.
func readBundle(t *testing.T, api *client.Client, sha string) (b reviewBundle, cert *x509.Certificate) {
	t.Helper()
	body := must.Get(api.Envelope(t.Context(), "acme", "api", latestReview(t, api, sha).ID))(t)
	must.OK(t, json.Unmarshal(body, &b))
	cert = must.Get(x509.ParseCertificate(b.Material.Certificate.RawBytes))(t)
	return b, cert
}

// verifyWithDSSE verifies an envelope with the library that cosign uses, and the key of its certificate.
func verifyWithDSSE(t *testing.T, api *client.Client, sha string) {
	bundle, cert := readBundle(t, api, sha)
	verifier := must.Get(dsse.NewEnvelopeVerifier(keyVerifier{cert}))(t)
	if _, err := verifier.Verify(t.Context(), &bundle.DSSE); err != nil {
		t.Errorf("the envelope: %v\n%s", err, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}))
	}
	bundle.DSSE.Payload = "e30="
	if _, err := verifier.Verify(t.Context(), &bundle.DSSE); err == nil {
		t.Error("another payload is accepted")
	}
}

// verifyWithCosign verifies an envelope with cosign's own package, and the key of its certificate.
func verifyWithCosign(t *testing.T, api *client.Client, sha string) {
	testenv.Need(t, "cosign-verify")
	bundle, cert := readBundle(t, api, sha)
	folder := t.TempDir()
	key, file := filepath.Join(folder, "key.pem"), filepath.Join(folder, "envelope.json")
	must.OK(t, os.WriteFile(key, []byte(must.PublicPEM(t, cert.PublicKey)), 0o600))
	verify := func(e dsse.Envelope) ([]byte, error) {
		text := must.Get(json.Marshal(e))(t)
		must.OK(t, os.WriteFile(file, text, 0o600))
		return exec.Command("cosign-verify", key, file).CombinedOutput()
	}

	if out, err := verify(bundle.DSSE); err != nil {
		t.Errorf("cosign: %v: %s", err, out)
	}
	bundle.DSSE.Payload = "e30="
	if out, err := verify(bundle.DSSE); err == nil {
		t.Errorf("cosign accepts another payload: %s", out)
	}
}

// A keyVerifier verifies signatures of a certificate's key.
type keyVerifier struct{ cert *x509.Certificate }

func (k keyVerifier) Verify(_ context.Context, data, sig []byte) error {
	return k.cert.CheckSignature(x509.ECDSAWithSHA256, data, sig)
}
func (k keyVerifier) KeyID() (string, error)   { return "", nil }
func (k keyVerifier) Public() crypto.PublicKey { return k.cert.PublicKey }
