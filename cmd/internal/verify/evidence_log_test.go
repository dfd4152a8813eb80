package verify

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/cmd/internal/evidence"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/ledger/proof/trustpolicy"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// Events in a log that was replaced are verified with its key, which must be trusted, too.
func TestEvidenceOfTwoEpochs(t *testing.T) {
	h := newHost(t)
	s, p := newSite(t, h), newPerson(t)
	wantVerified(t, p.verify(s, repo(t)))
	h.begin("the key was stolen")
	second := h.attest(commitID(1), "test:go", ledger.Fail) // which is a transition
	text := h.export(evidence.Options{})
	wantVerified(t, p.accepting(s, repo(t)))
	r, err := p.evidence(text)
	must.OK(t, err)
	wantVerified(t, r)
	want(t, r, verify.CheckCheckpoint, verify.OK, "ledger.example/v1/orgs/acme/log/2, signed by its key")
	want(t, r, verify.CheckStates, verify.OK, "1 commit")
	want(t, r, verify.CheckSignature, verify.OK, "2 attestations")

	// Somebody who knows only the key of the new log.
	_, err = pinned(h).evidence(text)
	if err == nil || !strings.Contains(err.Error(), "no key of the log ledger.example/v1/orgs/acme/log") {
		t.Errorf("without the key of the old log: %v", err)
	}

	// A proof in a log that the log has not replaced.
	f := filesOf(t, text)
	name := evidence.ProofFile(second.Event)
	f[name] = []byte(strings.Replace(string(f[name]), "acme/log/2", "acme/log/3", 1))
	r, err = p.evidence(f.pack(t))
	must.OK(t, err)
	want(t, r, verify.CheckInclusion, verify.Failed, "acme/log/3")
}

// Events that no checkpoint covers are in the export without proofs, which does not verify.
func TestEvidenceWithoutProof(t *testing.T) {
	h := newHost(t)
	s, p := newSite(t, h), newPerson(t)
	wantVerified(t, p.verify(s, repo(t)))
	lost := h.record(commitID(1), "lint:go", ledger.Pass) // while the log is not signed
	h.begin("restored a backup")
	h.receipt() // its key
	wantVerified(t, p.accepting(s, event(t, h.attest(commitID(2), "test:go", ledger.Pass).Event)))

	text := h.export(evidence.Options{})
	archive, err := evidence.Read(bytes.NewReader(text), int64(len(text)))
	must.OK(t, err)
	m, err := archive.Manifest()
	must.OK(t, err)
	if !slices.Contains(m.Unproven, lost.Event) {
		t.Errorf("the events without proof are %q", m.Unproven)
	}
	r, err := p.evidence(text)
	must.OK(t, err)
	want(t, r, verify.CheckInclusion, verify.Failed, evidence.ProofFile(lost.Event)+" is missing")
	want(t, r, verify.CheckRecord, verify.Failed, "does not prove its event")
}

// Without its salt, a proof shows nothing of the body. Then no body passes for the one in the log.
func TestEvidenceWithoutSalt(t *testing.T) {
	h := newHost(t)
	h.receipt() // its key
	f, p := filesOf(t, h.export(evidence.Options{})), pinned(h)
	body := f.named(t, "events/*.json")
	proofFile := strings.TrimSuffix(body, ".json") + ".proof"
	inclusion := must.Get(proof.ParseInclusion(f[proofFile]))(t)
	opening, err := proof.ParseOpening(inclusion.Extra)
	must.OK(t, err)
	opening.Salt = nil
	inclusion.Extra, err = opening.Format()
	must.OK(t, err)
	f[proofFile] = inclusion.Format()

	r, err := p.evidence(f.pack(t))
	must.OK(t, err)
	want(t, r, verify.CheckBody, verify.Failed, body+" is there, and its proof has nothing to compare it with")
	want(t, r, verify.CheckRecord, verify.NotChecked, "")
	delete(f, body)
	r, err = p.evidence(f.pack(t))
	must.OK(t, err)
	want(t, r, verify.CheckBody, verify.Failed, body+" is missing")
}

// A policy with a quorum requires cosignatures of the checkpoint of the export.
func TestEvidenceNeedsCosignatures(t *testing.T) {
	h := newHost(t)
	h.receipt() // its key
	text, p := h.export(evidence.Options{}), pinned(h)
	l, err := h.store.Log(t.Context(), "acme", 0)
	must.OK(t, err)
	witness, cosigner := newWitness(t)
	policy, err := trustpolicy.Parse([]byte("log " + l.VKey + "\nwitness w " + witness + "\nquorum w\n"))
	must.OK(t, err)
	p.change = func(o *Options) { o.Policy = policy }
	r, err := p.evidence(text)
	must.OK(t, err)
	want(t, r, verify.CheckWitnesses, verify.Failed, "0 of 1")

	f := filesOf(t, text)
	c, err := proof.ReadCheckpoint(f[evidence.CheckpointFile])
	must.OK(t, err)
	line := cosigner(c)
	for name := range f {
		if name == evidence.CheckpointFile || strings.HasSuffix(name, ".proof") {
			f[name] = append(f[name], line...)
		}
	}
	r, err = p.evidence(f.pack(t))
	must.OK(t, err)
	wantVerified(t, r)
	want(t, r, verify.CheckWitnesses, verify.OK, "1 of 1")

	// A proof must lead to the checkpoint of the export, and not to one without cosignatures.
	f[evidence.CheckpointFile] = f[evidence.CheckpointFile][:len(f[evidence.CheckpointFile])-len(line)]
	r, err = p.evidence(f.pack(t))
	must.OK(t, err)
	want(t, r, verify.CheckInclusion, verify.Failed, "another checkpoint than log/checkpoint")
}

// An export of another history is found if a checkpoint of the same size was seen.
func TestEvidenceOfAnotherHistory(t *testing.T) {
	ours := newHost(t)
	ours.receipt() // its key
	theirs := ours.copied()
	theirs.attest(commitID(2), "test:go", ledger.Pass)
	last := ours.attest(commitID(2), "test:go", ledger.Pass)
	text := theirs.export(evidence.Options{})
	p := newPerson(t)
	wantVerified(t, p.verify(newSite(t, ours), event(t, last.Event)))

	r, err := p.evidence(text)
	must.OK(t, err)
	c := want(t, r, consistency, verify.Failed, "FORK")
	if r.Verified || len(c.Evidence) != 2 {
		t.Errorf("verified %v, evidence %q", r.Verified, c.Evidence)
	}
	p.change = pinned(newHost(t)).change // a policy with another key than was seen
	r, err = p.evidence(text)
	must.OK(t, err)
	want(t, r, consistency, verify.Failed, "ANOTHER KEY")
}
