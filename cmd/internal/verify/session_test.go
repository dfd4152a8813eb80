package verify

import (
	"strings"
	"sync"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

const consistency = verify.CheckConsistency

// wantConflict checks that a conflict was found, that both checkpoints are stored, and that the
// person still remembers the one that was seen before.
func wantConflict(t *testing.T, p *person, r verify.Report, text string, seen, served int64) {
	t.Helper()
	c := want(t, r, consistency, verify.Failed, text)
	if r.Verified || len(c.Evidence) != 2 {
		t.Fatalf("verified %v, evidence %q", r.Verified, c.Evidence)
	}
	for i, size := range []int64{seen, served} {
		text := must.Read(t, c.Evidence[i])
		if stored, err := proof.ReadCheckpoint(text); err != nil || stored.Size != size {
			t.Errorf("%s: %+v, %v, want size %d", c.Evidence[i], stored, err, size)
		}
	}
	if got := p.size(); got != seen {
		t.Errorf("remembers size %d, want %d", got, seen)
	}
}

// size returns the size of the log that the person remembers.
func (p *person) size() int64 {
	p.t.Helper()
	l, err := p.memory.Log("ledger.example/v1/orgs/acme/log")
	must.OK(p.t, err)
	c := must.Get(proof.ReadCheckpoint([]byte(l.Checkpoint)))(p.t)
	return c.Size
}

func TestContacts(t *testing.T) {
	h := newHost(t)
	first := h.attest(commitID(2), "test:go", ledger.Pass)
	s, p := newSite(t, h), newPerson(t)

	r := p.verify(s, event(t, first.Event))
	wantVerified(t, r)
	want(t, r, consistency, verify.NotChecked, "first contact")
	size := p.size()
	for range 2 {
		r = p.verify(s, event(t, first.Event))
		want(t, r, consistency, verify.OK, "")
	}
	h.attest(commitID(3), "test:go", ledger.Pass)
	r = p.verify(s, event(t, first.Event))
	wantVerified(t, r)
	if p.size() <= size {
		t.Errorf("remembers size %d, after %d", p.size(), size)
	}
}

func TestTruncatedAndSignedAgain(t *testing.T) {
	h := newHost(t)
	s, p := newSite(t, h), newPerson(t)
	old := h.copied()
	before := old.attest(commitID(2), "test:go", ledger.Pass)
	h.attest(commitID(2), "test:go", ledger.Pass)
	last := h.attest(commitID(3), "test:go", ledger.Pass)
	wantVerified(t, p.verify(s, event(t, last.Event)))
	size := p.size()

	s.host.Store(old)
	l, err := old.store.Log(t.Context(), "acme", 0)
	must.OK(t, err)
	if l.Size >= size {
		t.Fatalf("size %d, want less than %d", l.Size, size)
	}
	r := p.verify(s, event(t, before.Event))
	want(t, r, verify.CheckInclusion, verify.OK, "")
	wantConflict(t, p, r, "ROLLBACK", size, l.Size)

	// Somebody without memory sees nothing.
	wantVerified(t, newPerson(t).verify(s, event(t, before.Event)))
}

// A host shows one client another history, each signed with the key of the log.
func TestForkServedToOneClient(t *testing.T) {
	ours := newHost(t)
	s, p, victim := newSite(t, ours), newPerson(t), newPerson(t)
	common := ours.attest(commitID(2), "test:go", ledger.Pass)
	wantVerified(t, p.verify(s, event(t, common.Event)))
	wantVerified(t, victim.verify(s, event(t, common.Event)))

	theirs := ours.copied()
	a := ours.attest(commitID(3), "test:go", ledger.Pass)
	b := theirs.attest(commitID(3), "test:go", ledger.Pass)
	wantVerified(t, p.verify(s, event(t, a.Event)))
	forked := newSite(t, theirs)
	victim.change = func(o *Options) { o.Server = s.URL }
	wantVerified(t, victim.verify(forked, event(t, b.Event))) // it extends what the victim has seen
	size := victim.size()

	// The victim is shown the public history again, of the same size and of a larger one.
	wantConflict(t, victim, victim.verify(s, event(t, a.Event)), "FORK", size, p.size())
	last := ours.attest(commitID(4), "test:go", ledger.Pass)
	wantVerified(t, p.verify(s, event(t, last.Event)))
	wantConflict(t, victim, victim.verify(s, event(t, last.Event)), "FORK", size, p.size())
}

// What the proof leads to is compared too: a proof of another history does not pass for one
// of the log's.
func TestProofOfAnotherHistory(t *testing.T) {
	ours := newHost(t)
	s, p := newSite(t, ours), newPerson(t)
	theirs := ours.copied()
	hidden := theirs.attest(commitID(3), "test:go", ledger.Pass)
	for n := range 3 {
		ours.attest(commitID(4+n), "test:go", ledger.Pass)
	}
	mixed := *ours
	mixed.api = byPath(ours.api, theirs.api)
	s.host.Store(&mixed)
	r := p.verify(s, event(t, hidden.Event))
	want(t, r, verify.CheckInclusion, verify.OK, "")
	want(t, r, consistency, verify.Failed, "FORK")
}

func TestAnotherKeyOrLog(t *testing.T) {
	h := newHost(t)
	s, p := newSite(t, h), newPerson(t)
	first := h.attest(commitID(2), "test:go", ledger.Pass)
	wantVerified(t, p.verify(s, event(t, first.Event)))
	size := p.size()

	other := newHost(t) // same names, another key
	e := other.attest(commitID(2), "test:go", ledger.Pass)
	s.host.Store(other)
	r := p.verify(s, event(t, e.Event))
	want(t, r, consistency, verify.Failed, "ANOTHER KEY")
	wantConflict(t, p, r, "ANOTHER KEY", size, size)

	// The server names a log that the person has never seen.
	s.host.Store(h)
	s.change = func(path string, body []byte) []byte {
		if strings.HasSuffix(path, "/log") {
			return []byte(strings.ReplaceAll(string(body), "ledger.example/", "other.example/"))
		}
		return body
	}
	wantConflict(t, p, p.verify(s, event(t, first.Event)), "ANOTHER LOG", size, size)
}

// Verifications that run at the same time as the log grows are no rollback.
func TestVerificationsAtOnce(t *testing.T) {
	h := newHost(t)
	s, p := newSite(t, h), newPerson(t)
	first := h.attest(commitID(2), "test:go", ledger.Pass)
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 10 {
				r, err := p.try(s, event(t, first.Event))
				if err != nil {
					t.Error(err)
					return
				}
				wantVerified(t, r)
			}
		})
	}
	for n := range 40 {
		h.attest(commitID(10+n), "test:go", ledger.Pass)
	}
	wait.Wait()
}
