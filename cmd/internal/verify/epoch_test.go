package verify

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
	"github.com/ledgerd/ledgerd/transparency"
)

// begin replaces the log of the host, and signs the new one.
func (h *host) begin(reason string) {
	h.t.Helper()
	_, err := h.signer.Begin(h.t.Context(), transparency.NewEpoch{Org: "acme", Reason: reason, Force: true})
	must.OK(h.t, err)
	h.sign()
}

// restored returns the host with the database of a backup, and its own keys.
func restored(h, backup *host) *host {
	h.t.Helper()
	must.OK(h.t, backup.store.Close())
	keys := filepath.Join(backup.folder, "keys")
	must.OK(h.t, os.RemoveAll(keys))
	must.OK(h.t, os.CopyFS(keys, os.DirFS(filepath.Join(h.folder, "keys"))))
	must.OK(h.t, os.Chmod(keys, 0o700))
	backup.open()
	return backup
}

// accepting verifies a subject, and accepts a new epoch.
func (p *person) accepting(s *site, subject func(*Session) (verify.Report, error)) verify.Report {
	p.t.Helper()
	p.change = func(o *Options) { o.AcceptEpoch = true }
	defer func() { p.change = nil }()
	return p.verify(s, subject)
}

func TestNewEpochAfterARestoreIsAcceptedByHand(t *testing.T) {
	testenv.From(t, testenv.Push, "takes many seconds")
	h := newHost(t)
	kept := h.attest(commitID(2), "test:go", ledger.Pass)
	backup := h.copied()
	for n := range 3 {
		h.attest(commitID(3+n), "test:go", ledger.Pass)
	}
	s, p := newSite(t, h), newPerson(t)
	wantVerified(t, p.verify(s, repo(t)))
	size := p.size()

	again := restored(h, backup)
	s.host.Store(again)
	unsigned := again.record(commitID(7), "test:go", ledger.Pass).Event
	want(t, p.verify(s, event(t, kept.Event)), consistency, verify.Failed, "ROLLBACK")
	again.begin("restored a backup")
	newest := again.attest(commitID(8), "test:go", ledger.Pass)

	for range 2 {
		r := p.verify(s, event(t, newest.Event))
		c := want(t, r, checkEpoch, verify.Failed, "NEW LOG: ledger.example/v1/orgs/acme/log was replaced at 20")
		want(t, r, checkEpoch, verify.Failed, `by now with ledger.example/v1/orgs/acme/log/2; `)
		want(t, r, checkEpoch, verify.Failed,
			fmt.Sprintf(`of the %d events that were seen are lost; the reason: "restored a backup"`, size))
		if r.Verified || len(c.Evidence) != 2 || p.size() != size {
			t.Errorf("verified %v, evidence %q, size %d", r.Verified, c.Evidence, p.size())
		}
	}
	r := p.accepting(s, event(t, newest.Event))
	wantVerified(t, r)
	want(t, r, checkEpoch, verify.OK, "accepted: ")
	want(t, r, consistency, verify.NotChecked, "first contact")

	// From now on the new log is remembered, and the old one still is.
	for _, person := range []*person{p, newPerson(t)} {
		r = person.verify(s, repo(t))
		wantVerified(t, r)
		want(t, r, verify.CheckBody, verify.NotChecked, "was not signed")
		want(t, r, verify.CheckStates, verify.OK, "those of 4 commits")
		r = person.verify(s, event(t, kept.Event))
		wantVerified(t, r)
		want(t, r, verify.CheckInclusion, verify.OK,
			"in the earlier log ledger.example/v1/orgs/acme/log, to which the newer one commits")
		want(t, r, consistency, verify.OK, "")
		want(t, person.verify(s, event(t, unsigned)), verify.CheckInclusion, verify.Failed, "no checkpoint of epoch 1 covers")
	}
	if p.size() != size {
		t.Errorf("remembers %d events of the old log, want %d", p.size(), size)
	}
}

func TestEpochsInARow(t *testing.T) {
	h := newHost(t)
	s, p := newSite(t, h), newPerson(t)
	wantVerified(t, p.verify(s, repo(t)))
	for n := range 3 {
		h.begin(fmt.Sprint("reason ", n+1))
		h.attest(commitID(2+n), "test:go", ledger.Pass)
	}
	r := p.verify(s, repo(t))
	want(t, r, checkEpoch, verify.Failed, `events that were seen are kept; the reason: "reason 1"`)
	elsewhere := newSite(t, h) // under another URL
	want(t, p.verify(elsewhere, repo(t)), checkEpoch, verify.Failed, `the reason: "reason 1"`)
	wantVerified(t, p.accepting(s, repo(t)))
	r = p.verify(s, repo(t))
	wantVerified(t, r)
	want(t, r, verify.CheckStates, verify.OK, "those of 4 commits")
	r = p.verify(elsewhere, repo(t))
	wantVerified(t, r)
	want(t, r, consistency, verify.OK, "")

	// The newest log that was seen anywhere is compared.
	h.begin("reason 4")
	want(t, p.verify(newSite(t, h), repo(t)), checkEpoch, verify.Failed, `acme/log/4 was replaced`)
	wantVerified(t, p.accepting(s, repo(t)))

	// It does not go back.
	s.change = func(path string, body []byte) []byte {
		if strings.HasSuffix(path, "/log") {
			return bytes.ReplaceAll(body, []byte("acme/log/5"), []byte("acme/log/4"))
		}
		return body
	}
	want(t, p.accepting(s, repo(t)), consistency, verify.Failed, "ANOTHER LOG")
}

// A new epoch does not excuse another history.
func TestNewEpochOfAForkIsRefused(t *testing.T) {
	ours := newHost(t)
	s, p := newSite(t, ours), newPerson(t)
	theirs := ours.copied()
	ours.attest(commitID(2), "test:go", ledger.Pass)
	wantVerified(t, p.verify(s, repo(t)))
	for n := range 3 {
		theirs.attest(commitID(3+n), "test:go", ledger.Pass)
	}
	theirs.begin("nothing to see here")
	s.host.Store(theirs)
	want(t, p.accepting(s, repo(t)), consistency, verify.Failed, "FORK")
}

// A server cannot invent a reason, nor a log that was replaced.
func TestFalseReplacements(t *testing.T) {
	for name, replace := range map[string][2]string{
		"another reason":   {"the true reason", "a false reason"},
		"another log":      {"orgs/acme/log\",\"size", "orgs/umbrella/log\",\"size"},
		"no previous log":  {`"previous"`, `"previously"`},
		"invalid event":    {`{`, `[`},
		"damaged old tree": {`"root":"`, `"root":"A`},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			s, p := newSite(t, h), newPerson(t)
			wantVerified(t, p.verify(s, repo(t)))
			h.begin("the true reason")
			s.change = func(path string, body []byte) []byte {
				if strings.Contains(path, "/events/") && !strings.HasSuffix(path, "/proof") &&
					bytes.Contains(body, []byte("the true reason")) {
					return bytes.Replace(body, []byte(replace[0]), []byte(replace[1]), 1)
				}
				return body
			}
			want(t, p.accepting(s, repo(t)), consistency, verify.Failed, "ANOTHER LOG: the first event of")
		})
	}
}
