package verify

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	formats "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerd/ledgerd/cmd/internal/seen"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/ledger/proof/receipt"
	"github.com/ledgerd/ledgerd/ledger/proof/trustpolicy"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
	"github.com/ledgerd/ledgerd/store"
)

// receipt returns a receipt of commit 1.
func (h *host) receipt() []byte { return h.receiptOf(commitID(1)) }

// receiptOf returns a receipt, as the command writes it to a file.
func (h *host) receiptOf(commit string) []byte {
	h.t.Helper()
	q := store.DecisionQuery{Org: "acme", Repo: "api", Commit: commit, Target: h.target}
	for n := 0; ; n++ {
		r, err := h.receipts.Issue(h.t.Context(), q)
		if err != nil && n < 5 { // the first call makes the key, which the log does not cover yet
			time.Sleep(2 * time.Millisecond)
			h.sign()
			continue
		}
		must.OK(h.t, err)
		return must.Get(json.Marshal(r))(h.t)
	}
}

func parsed(t *testing.T, text []byte) verify.Receipt {
	t.Helper()
	r, err := verify.ParseReceipt(text)
	must.OK(t, err)
	return r
}

func receiptOf(t *testing.T, text []byte) func(*Session) (verify.Report, error) {
	r := parsed(t, text)
	return func(s *Session) (verify.Report, error) { return s.Receipt(t.Context(), r, s.Now) }
}

// offline verifies a receipt without a server.
func (p *person) offline(text []byte) (verify.Report, error) {
	p.t.Helper()
	o := Options{Memory: p.memory, Now: ledger.TimeOf(time.Now())}
	if p.change != nil {
		p.change(&o)
	}
	return Offline(o, parsed(p.t, text), o.Now)
}

func TestReceipts(t *testing.T) {
	h := newHost(t)
	s, p := newSite(t, h), newPerson(t)
	text := h.receipt()
	if _, err := p.offline(text); err == nil || !strings.Contains(err.Error(), "is not known") {
		t.Errorf("without the key of the log: %v", err)
	}
	r := p.verify(s, receiptOf(t, text))
	wantVerified(t, r)
	want(t, r, verify.CheckSignature, verify.OK, "")
	want(t, r, verify.CheckKey, verify.OK, "")
	want(t, r, verify.CheckInclusion, verify.OK, "")
	want(t, r, verify.CheckCheckpoint, verify.OK, "")
	want(t, r, consistency, verify.NotChecked, "first contact")
	r, err := p.offline(text)
	must.OK(t, err)
	wantVerified(t, r)
	want(t, r, consistency, verify.NotChecked, "without the server")

	h.attest(commitID(2), "test:go", ledger.Pass)
	wantVerified(t, p.verify(s, receiptOf(t, text)))
	r, err = p.offline(text)
	must.OK(t, err)
	wantVerified(t, r)
}

// A receipt of another history than the server shows is refused with the server, and without
// it if a checkpoint of the same size was seen.
func TestReceiptOfAnotherHistory(t *testing.T) {
	ours := newHost(t)
	ours.receipt() // its key
	theirs := ours.copied()
	theirs.attest(commitID(2), "test:go", ledger.Pass)
	last := ours.attest(commitID(2), "test:go", ledger.Pass)
	text := theirs.receipt()
	s, p := newSite(t, ours), newPerson(t)
	wantVerified(t, p.verify(s, event(t, last.Event)))

	r, err := p.offline(text)
	must.OK(t, err)
	c := want(t, r, consistency, verify.Failed, "FORK")
	if r.Verified || len(c.Evidence) != 2 {
		t.Errorf("verified %v, evidence %q", r.Verified, c.Evidence)
	}
	r = p.verify(s, receiptOf(t, text))
	want(t, r, consistency, verify.Failed, "FORK")
	ours.attest(commitID(3), "test:go", ledger.Pass)
	r = newPerson(t).verify(s, receiptOf(t, text)) // without memory, too
	want(t, r, consistency, verify.Failed, "FORK")
}

func TestKeyOfTheLogOfAReceipt(t *testing.T) {
	h, other := newHost(t), newHost(t)
	text := h.receipt()
	s, p := newSite(t, h), newPerson(t)
	vkey := func(h *host) string {
		l, err := h.store.Log(t.Context(), "acme", 0)
		must.OK(t, err)
		return l.VKey
	}
	pin := func(policy string) func(*Options) {
		parsed := must.Get(trustpolicy.Parse([]byte(policy)))(t)
		return func(o *Options) { o.Policy = parsed }
	}
	ours, theirs := pin("log "+vkey(h)+"\nquorum none\n"), pin("log "+vkey(other)+"\nquorum none\n")

	p.change = ours
	r, err := p.offline(text)
	must.OK(t, err)
	wantVerified(t, r)
	p.change = theirs
	r, err = p.offline(text)
	must.OK(t, err)
	want(t, r, verify.CheckKey, verify.Failed, "")
	p.change = nil
	wantVerified(t, p.verify(s, receiptOf(t, text)))
	p.change = theirs // not the one that was seen
	r, err = p.offline(text)
	must.OK(t, err)
	want(t, r, consistency, verify.Failed, "ANOTHER KEY")
	p.memory = seen.Open(t.TempDir())
	p.change = pin("quorum none\n")
	if _, err = p.offline(text); err == nil {
		t.Error("verified with a policy without keys, and without memory")
	}

	// The memory must not be that of another key.
	p.memory = seen.Open(t.TempDir())
	l := seen.Log{Origin: "ledger.example/v1/orgs/acme/log", Key: vkey(other), Checkpoint: string(other.checkpoint()),
		SeenAt: ledger.TimeOf(time.Now())}
	_, err = p.memory.Replace(t.Context(), seen.Log{}, l)
	must.OK(t, err)
	p.change = nil
	r, err = p.offline(text)
	must.OK(t, err)
	want(t, r, verify.CheckKey, verify.Failed, "")
}

// newWitness returns the key of a new witness, and a function that returns its cosignature of a
// checkpoint, as a line of the note.
func newWitness(t *testing.T) (key string, cosign func(proof.Checkpoint) []byte) {
	t.Helper()
	skey, vkey, err := note.GenerateKey(rand.Reader, "w.example/w")
	must.OK(t, err)
	plain, err := trustpolicy.ParseKey(vkey, trustpolicy.Ed25519)
	must.OK(t, err)
	cosigner, err := formats.NewSignerForCosignatureV1(skey)
	must.OK(t, err)
	return trustpolicy.NewKey(plain.Name, trustpolicy.CosignedV1, []byte(plain.Public)).String(),
		func(c proof.Checkpoint) []byte {
			t.Helper()
			cosigned, err := note.Sign(&note.Note{Text: c.Text()}, cosigner)
			must.OK(t, err)
			return cosigned[len(c.Text())+1:]
		}
}

// A policy with a quorum wants cosignatures of the checkpoint of the receipt.
func TestReceiptNeedsCosignaturesOffline(t *testing.T) {
	h, p := newHost(t), newPerson(t)
	text := h.receipt()
	l, err := h.store.Log(t.Context(), "acme", 0)
	must.OK(t, err)
	witness, cosigner := newWitness(t)
	policy, err := trustpolicy.Parse([]byte("log " + l.VKey + "\nwitness w " + witness + "\nquorum w\n"))
	must.OK(t, err)
	later := time.Duration(0)
	p.change = func(o *Options) { o.Policy, o.MaxAge, o.Now = policy, 30*time.Minute, o.Now.Add(later) }
	r, err := p.offline(text)
	must.OK(t, err)
	want(t, r, verify.CheckWitnesses, verify.Failed, "0 of 1")

	parts := parsed(t, text)
	signed, err := parts.Checkpoints()
	must.OK(t, err)
	c, err := proof.ReadCheckpoint(signed[0])
	must.OK(t, err)
	parts.Proof += string(cosigner(c))
	text = must.Get(json.Marshal(parts.Receipt))(t)
	for d, status := range map[time.Duration]verify.Status{0: verify.OK, 45 * time.Minute: verify.Failed} {
		later = d
		r, err = p.offline(text)
		must.OK(t, err)
		want(t, r, verify.CheckWitnesses, verify.OK, "1 of 1")
		want(t, r, verify.CheckAge, status, "ago")
	}
}

// A receipt outlives its log, and the next log signs receipts with a key of its own.
func TestReceiptsOfTwoEpochs(t *testing.T) {
	h := newHost(t)
	s, p := newSite(t, h), newPerson(t)
	old := h.receipt()
	theirs := h.copied()
	forked := theirs.receiptAfter(commitID(2))
	h.attest(commitID(2), "test:go", ledger.Pass)
	wantVerified(t, p.verify(s, receiptOf(t, old)))
	h.begin("the key was stolen")
	h.attest(commitID(3), "test:go", ledger.Pass)
	renewed := h.receiptAfter(commitID(4))
	if a, b := parsed(t, old), parsed(t, renewed); a.Says.Log.Origin+"/2" != b.Says.Log.Origin ||
		a.Receipt.Key.PublicKey == b.Receipt.Key.PublicKey {
		t.Fatalf("the receipts rest on %s and %s, with the keys %s and %s", a.Says.Log.Origin, b.Says.Log.Origin,
			a.Receipt.Key.PublicKey, b.Receipt.Key.PublicKey)
	}

	want(t, p.verify(s, receiptOf(t, renewed)), checkEpoch, verify.Failed, "NEW LOG")
	wantVerified(t, p.accepting(s, receiptOf(t, renewed)))
	for _, text := range [][]byte{old, renewed} {
		wantVerified(t, p.verify(s, receiptOf(t, text)))
		r, err := p.offline(text)
		must.OK(t, err)
		wantVerified(t, r)
	}
	r := p.verify(s, receiptOf(t, old))
	want(t, r, checkEpoch, verify.OK, "ledger.example/v1/orgs/acme/log/2 has replaced the log")
	want(t, r, consistency, verify.OK, "")
	r = p.verify(s, receiptOf(t, forked))
	c := want(t, r, checkEpoch, verify.Failed, "FORK")
	if r.Verified || len(c.Evidence) != 1 {
		t.Errorf("verified %v, evidence %q", r.Verified, c.Evidence)
	}

	// Somebody new does not know the key of the old log.
	if _, err := newPerson(t).try(s, receiptOf(t, old)); err == nil || !strings.Contains(err.Error(), "is not known") {
		t.Errorf("first contact: %v", err)
	}
}

// receiptAfter returns a receipt of a commit that is attested for it.
func (h *host) receiptAfter(commit string) []byte {
	h.t.Helper()
	h.attest(commit, "test:go", ledger.Pass)
	return h.receiptOf(commit)
}

// What a receipt must be for is compared only as far as it is said, and all of it is if
// org, repo, commit and state are.
func TestReceiptIsForWhatIsWanted(t *testing.T) {
	const subject = verify.CheckSubject
	h := newHost(t)
	s, p := newSite(t, h), newPerson(t)
	text := h.receipt()
	wantVerified(t, p.verify(s, receiptOf(t, text)))
	other := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	full := receipt.Want{Org: "acme", Repo: "api", Commit: commitID(1), State: ledger.Attested}

	for name, test := range map[string]struct {
		change func(r *verify.Receipt)
		check  string
		want   verify.Status
	}{
		"nothing":    {func(*verify.Receipt) {}, subject, verify.NotChecked},
		"all":        {func(r *verify.Receipt) { r.Want = full }, subject, verify.OK},
		"no commit":  {func(r *verify.Receipt) { r.Want = full; r.Want.Commit = "" }, subject, verify.NotChecked},
		"no repo":    {func(r *verify.Receipt) { r.Want = full; r.Want.Repo = "" }, subject, verify.NotChecked},
		"no state":   {func(r *verify.Receipt) { r.Want = full; r.Want.State = 0 }, subject, verify.NotChecked},
		"a target":   {func(r *verify.Receipt) { r.Want = full; r.Want.Target = "main" }, subject, verify.Failed},
		"pinned key": {func(r *verify.Receipt) { r.Key = &other.PublicKey }, verify.CheckSignature, verify.Failed},
	} {
		r := parsed(t, text)
		test.change(&r)
		report, err := Offline(Options{Memory: p.memory, Now: ledger.TimeOf(time.Now())}, r, ledger.TimeOf(time.Now()))
		must.OK(t, err)
		t.Run(name, func(t *testing.T) { want(t, report, test.check, test.want, "") })
	}

	// One for a target branch is not one for all.
	h.target = "main"
	r := parsed(t, h.receipt())
	for complete, status := range map[bool]verify.Status{true: verify.Failed, false: verify.NotChecked} {
		if r.Want = (receipt.Want{}); complete {
			r.Want = full
		}
		report, err := Offline(Options{Memory: p.memory}, r, ledger.TimeOf(time.Now()))
		must.OK(t, err)
		want(t, report, subject, status, "main")
	}
}
