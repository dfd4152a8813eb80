package verify

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ledgerd/ledgerd/cmd/internal/evidence"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

func repo(t *testing.T) func(*Session) (verify.Report, error) {
	return func(s *Session) (verify.Report, error) { return s.Repo(t.Context(), "api") }
}

func commit(t *testing.T, n int) func(*Session) (verify.Report, error) {
	return func(s *Session) (verify.Report, error) { return s.Commit(t.Context(), "api", commitID(n)) }
}

func TestRepoAndCommit(t *testing.T) {
	h := newHost(t)
	for n := range 5 {
		h.attest(commitID(2+n), "test:go", ledger.Pass)
		h.attest(commitID(2+n), "lint:go", ledger.Fail)
	}
	_, etag, err := h.admin.Policy(t.Context(), "acme", "api")
	must.OK(t, err)
	_, err = h.admin.SetPolicy(t.Context(), "acme", "api", []byte(`{"requirements":[]}`), etag)
	must.OK(t, err)
	h.sign()
	s, p := newSite(t, h), newPerson(t)

	r := p.verify(s, repo(t))
	wantVerified(t, r)
	want(t, r, verify.CheckAttestations, verify.OK, "the ledger lists 11, and the log has 11")
	want(t, r, verify.CheckStates, verify.OK, "those of 6 commits")
	want(t, r, verify.CheckPolicy, verify.OK, "version 2")
	want(t, r, verify.CheckSignature, verify.OK, "11 ")

	r = p.verify(s, commit(t, 2))
	wantVerified(t, r)
	want(t, r, verify.CheckAttestations, verify.OK, "the ledger lists 2, and the log has 2")
	want(t, r, verify.CheckStates, verify.OK, "by the events in the log")
	want(t, r, "complete", verify.NotChecked, "verify repo")
}

// What a server changes in its responses is found.
func TestChangedResponses(t *testing.T) {
	h := newHost(t)
	target := h.attest(commitID(2), "test:go", ledger.Pass)
	h.attest(commitID(3), "test:go", ledger.Pass)
	swap := func(part, old, new string) func(string, []byte) []byte {
		return func(path string, body []byte) []byte {
			if strings.Contains(path, part) && !strings.Contains(path, "/log/") {
				return bytes.ReplaceAll(body, []byte(old), []byte(new))
			}
			return body
		}
	}

	for name, test := range map[string]struct {
		change func(string, []byte) []byte
		check  string
	}{
		"body":     {swap("/events", `"predicate":"test:go"`, `"predicate":"test:no"`), verify.CheckBody},
		"event ID": {swap("/events", target.Event, "evt_01KAJ8Q0M6R4YB0J3X5T9ZC2DE"), verify.CheckEvents},
		"state":    {swap("/commits", `"state":"ATTESTED"`, `"state":"PROMOTABLE"`), verify.CheckStates},
		"predicate": {swap("/attestations/"+target.ID, `"predicate":"test:go"`, `"predicate":"review:go"`),
			verify.CheckRecord},
		"digest": {swap("/policies", `"digest":"sha256:`, `"digest":"sha256:00`), verify.CheckPolicy},
		"entries": {func(path string, body []byte) []byte {
			if strings.Contains(path, "/tile/entries/") {
				return bytes.Replace(body, []byte(`"type":"state"`), []byte(`"type":"radar"`), 1)
			}
			return body
		}, verify.CheckEvents},
	} {
		s := newSite(t, h)
		s.change = test.change
		r := newPerson(t).verify(s, repo(t))
		if r.Verified {
			t.Errorf("%s: verified", name)
		}
		want(t, r, test.check, verify.Failed, "")
	}
}

// An event that the host passes off as one of another repo is found by the audit of the repo.
func TestHiddenEvent(t *testing.T) {
	h := newHost(t)
	h.attest(commitID(2), "test:go", ledger.Fail)
	s := newSite(t, h)
	s.change = func(path string, body []byte) []byte {
		if strings.HasSuffix(path, "/events") {
			return bytes.ReplaceAll(body, []byte(`"repo":"api"`), []byte(`"repo":"web"`))
		}
		return body
	}
	r := newPerson(t).verify(s, repo(t))
	want(t, r, verify.CheckBody, verify.Failed, "not the one in the log")
}

// Events that a server refuses to an administrator, and those of newer versions, are not checked.
func TestEventsThatAreNotRead(t *testing.T) {
	h := newHost(t)
	h.record(commitID(2), "test:go", ledger.Pass)
	h.sign()
	honest := h.api
	h.api = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/events") && strings.Contains(r.URL.Query().Get("types"), "audit") {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"title":"Forbidden","status":403,"code":"forbidden","detail":"no"}`)
			return
		}
		honest.ServeHTTP(w, r)
	})
	r := newPerson(t).verify(newSite(t, h), repo(t))
	wantVerified(t, r)
	want(t, r, verify.CheckEvents, verify.NotChecked, "only administrators can read, and the server refuses them")
	if r.Complete {
		t.Error("complete, without what the server refuses")
	}

	h = newHost(t)
	h.record(commitID(2), "test:go", ledger.Pass)
	h.change("UPDATE events SET type = 'of-tomorrow' WHERE type = 'state' AND seq = (SELECT max(seq) FROM events)")
	h.sign()
	r = newPerson(t).verify(newSite(t, h), func(s *Session) (verify.Report, error) { return s.Repo(t.Context(), "api") })
	want(t, r, verify.CheckEvents, verify.NotChecked, "1 are of a type that this version of ledgerd does not know")
	if r.Complete {
		t.Error("complete, without what is of a newer version")
	}
}

// A field that only a newer version knows may say that what this one derives is wrong.
func TestFieldOfANewerVersion(t *testing.T) {
	h := newHost(t)
	h.record(commitID(2), "test:go", ledger.Pass)
	id := h.rewrite(ledger.EventState, `"timestamp":`, `"tomorrow":true,"timestamp":`)
	h.sign()
	for kind, verified := range map[string]func(*Session) (verify.Report, error){
		"repo":  func(s *Session) (verify.Report, error) { return s.Repo(t.Context(), "api") },
		"event": func(s *Session) (verify.Report, error) { return s.Event(t.Context(), id) },
	} {
		r := newPerson(t).verify(newSite(t, h), verified)
		want(t, r, verify.CheckBody, verify.NotChecked, "it has the field tomorrow, which this version of")
		if wantVerified(t, r); r.Complete {
			t.Errorf("%s: complete, without what only a newer version knows", kind)
		}
	}

	r, err := pinned(h).evidence(h.export(evidence.Options{Commit: commitID(2)}))
	must.OK(t, err)
	want(t, r, verify.CheckBody, verify.NotChecked, "it has the field tomorrow")
	wantVerified(t, r)
}

// Events are read in pages with their salts. A server of a release before that takes a request for the proof
// of each.
func TestEventsAreReadInPages(t *testing.T) {
	for name, isOld := range map[string]bool{"newest release": false, "release 0.1.0": true} {
		h := newHost(t)
		h.record(commitID(2), "test:go", ledger.Pass)
		h.sign()
		proofs, honest := new(atomic.Int64), h.api
		h.api = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/proof") {
				proofs.Add(1)
			}
			if isOld && r.URL.Query().Has("salts") {
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"title":"Bad Request","status":400,"code":"invalid_parameter","detail":"no"}`)
				return
			}
			honest.ServeHTTP(w, r)
		})

		r := newPerson(t).verify(newSite(t, h), repo(t))
		wantVerified(t, r)
		if n := proofs.Load(); !r.Complete || n > 1 != isOld {
			t.Errorf("%s: %d proofs were read, complete: %v", name, n, r.Complete)
		}
	}
}
