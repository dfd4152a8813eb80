package verify

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

func attested(t *testing.T, id string) func(*Session) (verify.Report, error) {
	return func(s *Session) (verify.Report, error) { return s.Attestation(t.Context(), "api", id) }
}

// What the ledger has pruned is not checked, and the rest is.
func TestPruned(t *testing.T) {
	h := newHostAgo(t, 48*time.Hour)
	old := h.attest(commitID(1), "lint:go", ledger.Pass)
	h.prune(ledger.RetentionChange{Envelopes: new(ledger.MinRetention)})
	h.attest(commitID(1), "review:code", ledger.Pass)
	s, p := newSite(t, h), newPerson(t)
	r := p.verify(s, attested(t, old.ID))
	wantVerified(t, r)
	want(t, r, verify.CheckSignature, verify.NotChecked, "the ledger has pruned the envelope")
	want(t, r, verify.CheckRecord, verify.OK, "it is what the event says")
	r = rederiving(t).verify(s, repo(t))
	wantVerified(t, r)
	want(t, r, verify.CheckSignature, verify.NotChecked, "2 events: the ledger has pruned the envelope")
	want(t, r, verify.CheckSignature, verify.OK, "1 event")
	want(t, r, verify.CheckDerivation, verify.NotChecked, "but the ledger has pruned evidence")
	want(t, r, verify.CheckStates, verify.OK, "")

	h.prune(ledger.RetentionChange{Events: new(ledger.MinRetention)})
	s = newSite(t, h)
	r = p.verify(s, event(t, old.Event))
	wantVerified(t, r)
	want(t, r, verify.CheckBody, verify.NotChecked, "it was pruned")
	want(t, r, verify.CheckInclusion, verify.OK, "")
	r = p.verify(s, attested(t, old.ID))
	wantVerified(t, r)
	want(t, r, verify.CheckRecord, verify.NotChecked, "the ledger has pruned the event")
	for _, subject := range []func(*Session) (verify.Report, error){commit(t, 1), repo(t)} {
		r = p.verify(s, subject)
		wantVerified(t, r)
		want(t, r, verify.CheckEvents, verify.NotChecked, "the ledger has pruned what ")
		want(t, r, verify.CheckAttestations, verify.OK, "")
	}
	wantVerified(t, rederiving(t).verify(s, repo(t)))
}

// Pruned events excuse neither events that are lost, nor a state that other events show.
func TestPrunedExcusesNothingElse(t *testing.T) {
	h := newHostAgo(t, 48*time.Hour)
	h.prune(ledger.RetentionChange{Events: new(ledger.MinRetention)})
	h.attest(commitID(2), "lint:go", ledger.Pass)
	later := h.attest(commitID(2), "test:go", ledger.Pass)
	s, p := newSite(t, h), newPerson(t)
	r := p.verify(s, repo(t))
	wantVerified(t, r)
	want(t, r, verify.CheckStates, verify.NotChecked, "1 of 2 commits have theirs by events that the ledger has pruned")

	for name, change := range map[string]struct{ statement, check string }{
		"the state of a commit": {"UPDATE commits SET state = 4 WHERE sha = '" + commitID(2) + "'", verify.CheckStates},
		"a lost event": {
			"UPDATE events SET event_id = 'evt_01M8RGR080WQVTVHT76PFDWXTN' WHERE event_id = '" + later.Event + "'",
			verify.CheckEvents,
		},
	} {
		t.Run(name, func(t *testing.T) {
			other := h.copied()
			other.change(change.statement)
			r := p.verify(newSite(t, other), repo(t))
			want(t, r, change.check, verify.Failed, "")
		})
	}
}

// Events of the other types are never pruned, so a host cannot hide them by saying so.
func TestOtherEventsAreNeverPruned(t *testing.T) {
	h := newHost(t)
	identities := must.Get(client.Collect(h.admin.Identities(t.Context(), "acme"), 10))(t)
	h.change("UPDATE events SET body = x'', salt = NULL WHERE event_id = '" + identities[0].Event + "'")
	s, p := newSite(t, h), newPerson(t)
	r := p.verify(s, event(t, identities[0].Event))
	want(t, r, verify.CheckBody, verify.Failed, "it was pruned, and events of the type identity never are")
	r = p.verify(s, repo(t))
	want(t, r, verify.CheckEvents, verify.Failed, ": it was pruned, and events of the type identity never are")
}

// A body that is shown is not passed off as pruned by a proof without its salt.
func TestShownBodyNeedsTheSalt(t *testing.T) {
	h := newHost(t)
	a := h.attest(commitID(2), "test:go", ledger.Pass)
	h.change("UPDATE events SET salt = NULL WHERE event_id = '" + a.Event + "'")
	s, p := newSite(t, h), newPerson(t)
	for _, subject := range []func(*Session) (verify.Report, error){attested(t, a.ID), repo(t), commit(t, 2)} {
		want(t, p.verify(s, subject), verify.CheckBody, verify.Failed, "its proof has nothing to compare it with")
	}
}

// The signature of an envelope is verified even if the event of its recording was pruned, and the
// record must be what was signed, whatever name the repo has.
func TestPrunedEventLeavesTheEnvelope(t *testing.T) {
	h := newHostAgo(t, 48*time.Hour)
	a := h.attest(commitID(2), "test:go", ledger.Pass)
	h.prune(ledger.RetentionChange{Events: new(ledger.MinRetention)})
	s, p := newSite(t, h), newPerson(t)
	r := p.verify(s, attested(t, a.ID))
	wantVerified(t, r)
	want(t, r, verify.CheckSignature, verify.OK, "by "+h.dn)
	want(t, r, verify.CheckDigests, verify.NotChecked, verify.PrunedEvent)
	want(t, r, verify.CheckRecord, verify.NotChecked, verify.PrunedEvent)

	_, err := h.admin.ChangeRepo(t.Context(), "acme", "api", ledger.RepoChange{Name: new("web")})
	must.OK(t, err)
	h.sign()
	r = p.verify(s, func(s *Session) (verify.Report, error) { return s.Attestation(t.Context(), "web", a.ID) })
	wantVerified(t, r)
	want(t, r, verify.CheckSignature, verify.OK, "by "+h.dn)

	of := " WHERE attestation_id = '" + a.ID + "'"
	for check, statement := range map[string]string{
		verify.CheckRecord:  "UPDATE attestations SET status = 'fail'" + of,
		verify.CheckDigests: "UPDATE attestations SET payload_digest = x'" + strings.Repeat("ab", 32) + "'" + of,
		verify.CheckSignature: "UPDATE envelopes SET payload = CAST(replace(CAST(payload AS TEXT), 'pass', 'warn') AS BLOB)" +
			" " +
			"WHERE attestation_id = (SELECT id FROM attestations" + of + ")",
	} {
		t.Run(check, func(t *testing.T) {
			other := h.copied()
			other.change(statement)
			r := p.verify(newSite(t, other), func(s *Session) (verify.Report, error) {
				return s.Attestation(t.Context(), "web", a.ID)
			})
			want(t, r, check, verify.Failed, "")
		})
	}
}

// A pruned event stands for one attestation only.
func TestPrunedEventIsOfOneAttestation(t *testing.T) {
	h := newHostAgo(t, 48*time.Hour)
	a := h.attest(commitID(1), "lint:go", ledger.Pass)
	b := h.attest(commitID(1), "review:code", ledger.Pass)
	h.prune(ledger.RetentionChange{Events: new(ledger.MinRetention)})
	p := newPerson(t)
	for _, subject := range []func(*Session) (verify.Report, error){repo(t), commit(t, 1)} {
		wantVerified(t, p.verify(newSite(t, h), subject))
		other := h.copied()
		other.change("UPDATE attestations SET event_id = '" + a.Event + "' WHERE attestation_id = '" + b.ID + "'")
		r := p.verify(newSite(t, other), subject)
		want(t, r, verify.CheckAttestations, verify.Failed, "has the pruned event "+a.Event+", which is of another")
	}
}

// fakeEvents returns a session with a ledger that lists events, page by page, and has pruned all
// others, except that evt_lost never was, and evt_secret may not be read. A page without events has a next one.
func fakeEvents(t *testing.T, pages ...[]string) *Session {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/events") {
			w.Header().Set("Content-Type", "application/problem+json")
			status, code := http.StatusGone, ledger.CodePruned
			switch path.Base(r.URL.Path) {
			case "evt_lost":
				status, code = http.StatusNotFound, ledger.CodeNotFound
			case "evt_secret":
				status, code = http.StatusForbidden, ledger.CodeForbidden
			}
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"status":%d,"code":%q,"detail":"it is not there"}`, status, code)
			return
		}

		var page []string
		next := "more"
		if len(pages) > 0 {
			page, pages = pages[0], pages[1:]
		}
		for i, id := range page {
			page[i], next = `{"id":"`+id+`"}`, ""
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"data":[%s],"next_cursor":%q}`, strings.Join(page, ","), next)
	}))
	t.Cleanup(s.Close)
	c := must.Get(client.New(s.URL, client.Options{}))(t)
	return &Session{Options: Options{Org: "acme"}, client: c}
}

// Events of earlier logs are passed over, and no others, if the first ones were pruned.
func TestEarlierEventsArePassedOver(t *testing.T) {
	b := &bodies{session: fakeEvents(t, []string{"evt_2", "evt_5", "evt_6"}), before: 3, events: 6}
	for i, wanted := range []bool{false, true, true} {
		e := logged{index: 3 + int64(i), leaf: proof.Leaf{Event: fmt.Sprint("evt_", 4+i), Type: ledger.EventState}}
		must.OK(t, b.next(t.Context(), &e))
		if got := e.body != nil; got != wanted {
			t.Errorf("%s has a body: %v, want %v", e.leaf.Event, got, wanted)
		}
	}
}

// An event that is not listed was lost, unless it was pruned or cannot be read. An event that is
// listed again is not passed over.
func TestEventsThatAreNotListed(t *testing.T) {
	next := func(b *bodies, id string) error {
		e := logged{index: 3, leaf: proof.Leaf{Event: id, Type: ledger.EventState}}
		return b.next(t.Context(), &e)
	}
	for id, isUnread := range map[string]bool{"evt_lost": false, "evt_secret": true} {
		err := next(&bodies{session: fakeEvents(t, []string{"evt_1"})}, id)
		if _, ok := errors.AsType[*verify.FetchError](err); err == nil || ok != isUnread {
			t.Errorf("%s: the error is %v, want one of the reading: %v", id, err, isUnread)
		}
	}

	b := &bodies{session: fakeEvents(t, []string{"evt_5", "evt_4", "evt_7"}), before: 3}
	must.OK(t, next(b, "evt_5"))
	if err := next(b, "evt_lost"); err == nil || !strings.Contains(err.Error(), "the ledger lists evt_4") {
		t.Errorf("the error is %v, want that evt_4 is listed", err)
	}
}

// A list may have as many pages without events as there can be pages of pruned events, and no more
// than a few in addition.
func TestEmptyPagesAreBounded(t *testing.T) {
	for n, isWhole := range map[int]bool{maxEmptyPages + 8: true, maxEmptyPages + 9: false} {
		b := &bodies{session: fakeEvents(t, append(make([][]string, n), []string{"evt_1"})...), events: 10 * listedEvents}
		if err := b.fill(t.Context()); (err == nil) != isWhole {
			t.Errorf("after %d empty pages, the error is %v", n, err)
		}
	}
}
