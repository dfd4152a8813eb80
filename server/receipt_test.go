package server

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/ledger/proof/receipt"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/transparency"
)

// A receiptBackend is a backend that signs receipts, and acme's log when it is asked to.
type receiptBackend struct {
	*backend
	keys   string // folder
	signer *transparency.Signer
}

func newReceiptBackend(t *testing.T, changes ...func(*Config)) *receiptBackend {
	t.Helper()
	r := &receiptBackend{keys: filepath.Join(t.TempDir(), "keys")}
	base := &url.URL{Scheme: "https", Host: "ledger.test"}
	open := func() (*transparency.Keys, error) { return transparency.OpenKeys(r.keys, r.keys) }
	r.backend = newBackend(t, append(changes, func(c *Config) {
		c.Logs.Receipts = transparency.NewReceipts(transparency.ReceiptConfig{Store: c.Store, Keys: open, Scheme: base.Scheme,
			Validity: 24 * time.Hour, Logger: c.Logger})
		keys, err := open()
		must.OK(t, err)
		r.signer = transparency.NewSigner(transparency.Config{Store: c.Store, Keys: keys, BaseURL: base,
			Logger: slog.New(slog.DiscardHandler)})
	})...)
	return r
}

// signAll signs the log.
func (r *receiptBackend) signAll() {
	r.t.Helper()
	must.OK(r.t, r.signer.SignAll(r.t.Context(), true))
}

func receiptPath(n int, query string) string { return commitPath(commitID(n)) + "/receipt" + query }

// ready gets a receipt for a commit until its key and what it rests on are in the log.
func (r *receiptBackend) ready(n int, query string) ledger.Receipt {
	r.t.Helper()
	r.signAll()
	if a := r.get(receiptPath(n, query)); a.status != 200 {
		a.wantProblem(409, ledger.CodeNotInCheckpoint)
		r.signAll()
	}
	return decode[ledger.Receipt](r.get(receiptPath(n, query)).want(200))
}

// verify verifies a receipt with the key of the log alone.
func (r *receiptBackend) verify(v ledger.Receipt, want receipt.Want) receipt.Verified {
	r.t.Helper()
	l, err := r.store.Log(r.t.Context(), "acme", 0)
	must.OK(r.t, err)
	key := must.Get(note.NewVerifier(l.VKey))(r.t)
	verified, err := receipt.Verify(v, receipt.Trust{Logs: []note.Verifier{key}}, want, r.clock.time())
	must.OK(r.t, err)
	return verified
}

func wantOf(n int, state ledger.State) receipt.Want {
	return receipt.Want{Org: "acme", Repo: "api", Commit: commitID(n), State: state}
}

// receiptKeys returns the files with private keys of receipts.
func (r *receiptBackend) receiptKeys() []string {
	r.t.Helper()
	return must.Get(filepath.Glob(filepath.Join(r.keys, "acme.1.receipt-*.key")))(r.t)
}

// events returns the bodies of acme's events of a type.
func (r *receiptBackend) events(kind string) []string {
	r.t.Helper()
	var list []string
	page := decode[ledger.Page[map[string]any]](r.get("/v1/orgs/acme/events?limit=500&types=" + kind).want(200))
	for _, e := range page.Data {
		list = append(list, e["id"].(string))
	}
	return list
}

func sha256Of(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Each server with the database signs receipts with a key of its own.
func TestReceiptsOfTwoServers(t *testing.T) {
	b := newReceiptBackend(t)
	b.setPolicy(`"requirements":[{"state":"ATTESTED","predicate":"test:*"}]`)
	b.passes(b.backend.signer("cn=ci,ou=build,o=acme"), commitID(1), "test:go")
	first := b.ready(1, "")
	other := filepath.Join(t.TempDir(), "state")
	second := transparency.NewReceipts(transparency.ReceiptConfig{Store: b.store, Scheme: "https", Validity: time.Hour,
		Keys:   func() (*transparency.Keys, error) { return transparency.OpenKeys(b.keys, other) },
		Logger: slog.New(slog.DiscardHandler)})
	issue := func() (ledger.Receipt, error) {
		return second.Issue(t.Context(), store.DecisionQuery{Org: "acme", Repo: "api", Commit: commitID(1)})
	}

	if _, err := issue(); err == nil || !strings.Contains(err.Error(), "no checkpoint covers") {
		t.Errorf("before its key is announced: %v", err)
	}
	b.signAll()
	for range 3 {
		v, err := issue()
		must.OK(t, err)
		b.verify(v, wantOf(1, ledger.Attested))
		if v.Key.PublicKey == first.Key.PublicKey {
			t.Error("both servers sign with one key")
		}
	}
	b.verify(first, wantOf(1, ledger.Attested))
	if again := b.ready(1, ""); again.Key.PublicKey != first.Key.PublicKey {
		t.Error("the first server has another key now")
	}
	if n := len(b.events("key")); n != 2 {
		t.Errorf("%d keys are announced, want 2", n)
	}
}

func TestReceipt(t *testing.T) {
	b := newReceiptBackend(t)
	ci, ada := b.backend.signer("cn=ci,ou=build,o=acme"), b.backend.signer("cn=ada,ou=dev,o=acme")
	b.setPolicy(`"requirements":[{"state":"ATTESTED","predicate":"test:*"},
		{"state":"ATTESTED","predicate":"test:go","name":"go"},
		{"state":"PROMOTABLE","predicate":"review:*"}]`)
	tested := ci.statement(t, commitID(1), "test:go", ledger.Pass, 0)
	attestation := decode[ledger.AttestationRecord](b.attest(tested).want(201))
	b.passes(ada, commitID(1), "review:code")
	b.signAll()
	v := b.ready(1, "")
	verified := b.verify(v, wantOf(1, ledger.Promotable))

	now := b.clock.time()
	if verified.Scheme != "https" || verified.Log.Origin != "ledger.test/v1/orgs/acme/log" ||
		verified.PolicyVersion != 2 || verified.CreatedAt != now || verified.ValidUntil != now.Add(24*time.Hour) ||
		verified.Omitted != 0 {
		t.Errorf("the receipt %+v", verified.Receipt)
	}
	policy := b.get(policyPath).want(200)
	if !strings.Contains(string(policy.body), verified.PolicyDigest) {
		t.Errorf("the receipt is about the policy %s, and the policy is %s", verified.PolicyDigest, policy.body)
	}
	if len(verified.Evidence) != 2 {
		t.Fatalf("the evidence %+v", verified.Evidence)
	}
	want := receipt.Evidence{Attestation: attestation.ID, Event: attestation.Event, Commit: commitID(1),
		Predicate: "test:go", Identity: "cn=ci,ou=build,o=acme", PayloadDigest: attestation.PayloadDigest,
		EnvelopeDigest: sha256Of(tested),
		Requirements:   []string{"go", "test:*"}}
	if got := verified.Evidence[0]; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the evidence %+v, want %+v", got, want)
	}
	states := b.events("state")
	if newest := states[len(states)-1]; verified.Log.Event != newest {
		t.Errorf("the receipt rests on %s, want the transition %s", verified.Log.Event, newest)
	}

	// What a lower state rests on is less.
	lower := b.verify(b.ready(1, "?state=ATTESTED"), wantOf(1, ledger.Attested))
	if lower.State != ledger.Attested || len(lower.Evidence) != 1 || lower.Evidence[0].Attestation != attestation.ID {
		t.Errorf("the receipt for ATTESTED %+v", lower.Receipt)
	}
}

// The salt of the event that a receipt rests on is only for those who may read its body.
func TestAReceiptOpensNoEventButThatOfItsKey(t *testing.T) {
	b := newReceiptBackend(t)
	b.passes(b.backend.signer("cn=ci,ou=build,o=acme"), commitID(1), "test:go")
	v := b.ready(1, "")
	for text, salted := range map[string]bool{v.Proof: false, v.Key.Proof: true} {
		p := must.Get(proof.ParseInclusion([]byte(text)))(t)
		opening := must.Get(proof.ParseOpening(p.Extra))(t)
		if (opening.Salt != nil) != salted {
			t.Errorf("the proof of %s has a salt: %t", opening.Leaf.Event, opening.Salt != nil)
		}
	}
}

func TestNoReceiptWithoutStateOrCheckpoint(t *testing.T) {
	b := newReceiptBackend(t)
	ci := b.backend.signer("cn=ci,ou=build,o=acme")
	b.setPolicy(`"requirements":[{"state":"ATTESTED","predicate":"test:*"},
		{"state":"PROMOTABLE","predicate":"review:*"}]`)
	b.get(receiptPath(1, "")).wantProblem(404, ledger.CodeNotFound)
	b.get(commitPath("c0ffee")+"/receipt").wantProblem(404, ledger.CodeNotFound)
	b.get("/v1/orgs/acme/repos/none/commits/"+commitID(1)+"/receipt").wantProblem(404, ledger.CodeNotFound)
	b.register(commitID(1), "{}").want(201)
	for query, state := range map[string]string{"": "DRAFT", "?state=ATTESTED": "not ATTESTED"} {
		p := b.get(receiptPath(1, query)).wantProblem(409, ledger.CodeStateNotReached)
		if !strings.Contains(p.Detail, state) {
			t.Errorf("%s: %s", query, p.Detail)
		}
	}
	b.passes(ci, commitID(1), "build:docker")
	b.get(receiptPath(1, "")).wantProblem(409, ledger.CodeStateNotReached)
	for _, state := range []string{"VALIDATING", "DRAFT", "GREAT", ""} {
		b.get(receiptPath(1, "?state="+state)).wantProblem(400, ledger.CodeInvalidParameter)
	}
	b.get(receiptPath(1, "?target=..")).wantProblem(400, ledger.CodeInvalidParameter)

	b.passes(ci, commitID(1), "test:go")
	b.get(receiptPath(1, "?state=PROMOTABLE")).wantProblem(409, ledger.CodeStateNotReached)
	b.get(receiptPath(1, "")).wantProblem(409, ledger.CodeNotInCheckpoint)
	if len(b.receiptKeys()) != 0 || len(b.events("key")) != 0 {
		t.Error("a key was made without a receipt")
	}

	b.signAll()
	b.get(receiptPath(1, "")).wantProblem(409, ledger.CodeNotInCheckpoint) // of the key
	b.get(receiptPath(1, "")).wantProblem(409, ledger.CodeNotInCheckpoint)
	if n, m := len(b.receiptKeys()), len(b.events("key")); n != 1 || m != 1 {
		t.Errorf("%d keys and %d announcements, want one", n, m)
	}
	b.signAll()
	b.get(receiptPath(1, "")).want(200)

	b.passes(b.backend.signer("cn=ada,ou=dev,o=acme"), commitID(1), "review:code")
	b.get(receiptPath(1, "")).wantProblem(409, ledger.CodeNotInCheckpoint)
	b.ready(1, "?state=PROMOTABLE")
}

func TestNoReceiptsWithoutBaseURL(t *testing.T) {
	b := newBackend(t)
	b.passes(b.signer("cn=ci,ou=build,o=acme"), commitID(1), "test:go")
	p := b.get(receiptPath(1, "")).wantProblem(409, ledger.CodeNotInCheckpoint)
	if !strings.Contains(p.Detail, "base_url") {
		t.Errorf("the detail is %s", p.Detail)
	}
}

// A receipt ends before the state that it is about would.
func TestReceiptsEndWithTheState(t *testing.T) {
	b := newReceiptBackend(t)
	ci, other := b.backend.signer("cn=ci,ou=build,o=acme"), b.backend.signer("cn=other,ou=build,o=acme")
	b.setPolicy(`"requirements":[{"state":"ATTESTED","predicate":"test:*","max_age":"10h"},
		{"state":"PROMOTABLE","predicate":"review:*","max_age":"3h"}]`)
	b.passes(ci, commitID(1), "test:go")
	b.passes(ci, commitID(1), "review:code")
	recorded := b.clock.time()
	for query, hours := range map[string]int{"?state=ATTESTED": 10, "": 3} {
		v := b.verify(b.ready(1, query), wantOf(1, ledger.Attested))
		if want := recorded.Add(time.Duration(hours) * time.Hour); v.ValidUntil != want {
			t.Errorf("%s: valid until %s, want %s", query, v.ValidUntil, want)
		}
	}

	// Evidence that replaces what expires keeps the state.
	b.clock.advance(2 * time.Hour)
	b.passes(other, commitID(1), "review:code")
	v := b.verify(b.ready(1, ""), wantOf(1, ledger.Promotable))
	if want := recorded.Add(5 * time.Hour); v.ValidUntil != want || len(v.Evidence) != 3 {
		t.Errorf("valid until %s, want %s, with %d pieces of evidence", v.ValidUntil, want, len(v.Evidence))
	}
	b.clock.advance(3 * time.Hour)
	b.get(receiptPath(1, "?state=PROMOTABLE")).wantProblem(409, ledger.CodeStateNotReached)
	b.verify(b.ready(1, ""), wantOf(1, ledger.Attested))
	b.clock.advance(5 * time.Hour)
	b.get(receiptPath(1, "")).wantProblem(409, ledger.CodeStateNotReached)
}

func TestReceiptsForATargetBranch(t *testing.T) {
	b := newReceiptBackend(t)
	ci := b.backend.signer("cn=ci,ou=build,o=acme")
	b.setPolicy(`"requirements":[{"state":"ATTESTED","predicate":"test:*"},
		{"state":"PROMOTABLE","predicate":"review:*","branches":["main"]}]`)
	b.register(commitID(1), `{"target":"dev"}`).want(201)
	b.passes(ci, commitID(1), "test:go")
	b.get(receiptPath(1, "?state=PROMOTABLE")).wantProblem(409, ledger.CodeStateNotReached)
	want := wantOf(1, ledger.Promotable)
	want.Target = "dev"
	b.verify(b.ready(1, "?state=PROMOTABLE&target=dev"), want)
	b.get(receiptPath(1, "?state=PROMOTABLE&target=main")).wantProblem(409, ledger.CodeStateNotReached)
}

// A receipt rests on the contract too, and is not for a commit whose state the newest contract
// has still to change.
func TestReceiptsFollowTheContract(t *testing.T) {
	b := newReceiptBackend(t)
	b.passes(b.backend.signer("cn=ci,ou=build,o=acme"), commitID(1), "test:go")
	b.ready(1, "")
	b.setPolicy(`"requirements":[{"state":"ATTESTED","predicate":"test:*"},{"state":"PROMOTABLE","predicate":"sbom:*"}]`)
	b.get(receiptPath(1, "")).wantProblem(409, ledger.CodeNotInCheckpoint)
	v := b.verify(b.ready(1, ""), wantOf(1, ledger.Attested))
	policies := b.events("policy")
	if v.PolicyVersion != 2 || v.Log.Event != policies[0] {
		t.Errorf("the receipt %+v, want one that rests on %s", v.Receipt, policies)
	}

	b.setPolicy(`"requirements":[{"state":"ATTESTED","predicate":"sbom:*"}]`)
	b.get(receiptPath(1, "")).wantProblem(409, ledger.CodeStateNotReached)
	if state := b.state(commitID(1)); state != ledger.Validating {
		t.Errorf("the commit is %s", state)
	}
}

func TestKeysOfReceiptsAreRotated(t *testing.T) {
	b := newReceiptBackend(t)
	b.passes(b.backend.signer("cn=ci,ou=build,o=acme"), commitID(1), "test:go")
	first := b.ready(1, "").Key.PublicKey
	made := b.clock.time()
	listed := b.get("/v1/orgs/acme/events?types=key").want(200)
	for _, want := range []string{`"action":"added"`, `"purpose":"receipt"`, `"not_before":"` + made.String(),
		`"not_after":"` + made.Add(90*24*time.Hour).String()} {
		if !bytes.Contains(listed.body, []byte(want)) {
			t.Errorf("the event has no %s: %s", want, listed.body)
		}
	}

	b.clock.advance(76*24*time.Hour - 1)
	if again := b.ready(1, "").Key.PublicKey; again != first || len(b.receiptKeys()) != 1 {
		t.Error("the key was replaced early")
	}
	b.clock.advance(2 * time.Millisecond)
	old := decode[ledger.Receipt](b.get(receiptPath(1, "")).want(200))
	if old.Key.PublicKey != first || len(b.receiptKeys()) != 2 {
		t.Error("the old key does not sign until the new one is in the log")
	}
	b.signAll()
	second := b.ready(1, "")
	if second.Key.PublicKey == first || len(b.receiptKeys()) != 2 {
		t.Error("the new key does not sign")
	}
	b.verify(second, wantOf(1, ledger.Attested))

	// A key that is lost is replaced.
	for _, file := range b.receiptKeys() {
		must.OK(t, os.Remove(file))
	}
	third := b.ready(1, "")
	b.verify(third, wantOf(1, ledger.Attested))
	if third.Key.PublicKey == first || third.Key.PublicKey == second.Key.PublicKey || len(b.events("key")) != 3 {
		t.Error("the lost key was not replaced")
	}

	// So is one that is broken, or another one.
	files := b.receiptKeys()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	for _, text := range []string{"key", must.PrivatePEM(t, key)} {
		must.OK(t, os.WriteFile(files[0], []byte(text), 0o600))
		b.get(receiptPath(1, "")).wantProblem(409, ledger.CodeNotInCheckpoint)
		if !strings.Contains(b.log.String(), "a key of receipts cannot be used") {
			t.Errorf("the log: %s", b.log)
		}
		for _, file := range b.receiptKeys() {
			if file != files[0] {
				must.OK(t, os.Remove(file))
			}
		}
	}
}

// Private keys are in the key folder, only for its owner, and not in the database.
func TestPrivateKeysOfReceiptsStayInTheirFolder(t *testing.T) {
	b := newReceiptBackend(t)
	b.passes(b.backend.signer("cn=ci,ou=build,o=acme"), commitID(1), "test:go")
	b.ready(1, "")
	files := b.receiptKeys()
	if len(files) != 1 {
		t.Fatalf("%d keys", len(files))
	}
	info := must.Get(os.Stat(files[0]))(t)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the key has the mode %v", info.Mode())
	}

	text := must.Read(t, files[0])
	block, _ := pem.Decode(text)
	secret := block.Bytes[36:68] // the scalar in the PKCS #8 form
	database := must.Read(t, b.file)
	inBase64, inHex := base64.StdEncoding.EncodeToString(block.Bytes), hex.EncodeToString(secret)
	for _, form := range []string{string(secret), inBase64, inHex} {
		if bytes.Contains(database, []byte(form)) {
			t.Error("the database has the private key")
		}
	}
}

// Evidence beyond what a receipt has room for is counted.
func TestReceiptsAreBounded(t *testing.T) {
	b := newReceiptBackend(t)
	ci := b.backend.signer("cn=ci,ou=build,o=acme")
	for i := range receipt.MaxEvidence + 3 {
		b.passes(ci, commitID(1), fmt.Sprintf("test:%03d", i))
	}
	v := b.verify(b.ready(1, ""), wantOf(1, ledger.Attested))
	if len(v.Evidence) != receipt.MaxEvidence || v.Omitted != 3 {
		t.Errorf("%d pieces of evidence, and %d omitted", len(v.Evidence), v.Omitted)
	}
	byID := func(a, b receipt.Evidence) int { return strings.Compare(a.Attestation, b.Attestation) }
	if !slices.IsSortedFunc(v.Evidence, byID) {
		t.Error("the evidence is not sorted")
	}
}

// Of evidence, 16 MiB of envelopes are read for a receipt.
func TestEnvelopesOfAReceiptAreBounded(t *testing.T) {
	testenv.From(t, testenv.Push, "fills a limit")
	b := newReceiptBackend(t)
	ci := b.backend.signer("cn=ci,ou=build,o=acme")
	for i := range 6 {
		payload, err := attestation.NewStatement("x", commitID(1), attestation.ResultPredicate{
			Predicate: fmt.Sprint("test:", i), Result: ledger.Result{Status: ledger.Pass},
			Annotations: map[string]string{"log": strings.Repeat("x", 2_900_000)}})
		must.OK(t, err)
		b.attest(ci.sign(t, payload)).want(201)
	}
	b.passes(ci, commitID(1), "test:small") // for which there is room
	if v := b.verify(b.ready(1, ""), wantOf(1, ledger.Attested)); len(v.Evidence) != 6 || v.Omitted != 1 {
		t.Errorf("%d pieces of evidence, and %d omitted, want 6 and 1", len(v.Evidence), v.Omitted)
	}
}
