package store_test

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

const day = 24 * time.Hour

// A timeline is a store whose clocks the test moves.
type timeline struct {
	*store.Store
	t         *testing.T
	path      string
	wall      time.Time
	monotonic time.Duration
	log       bytes.Buffer
	n         int // number of statements
}

// Evidence in these tests is valid for 30 days.
const timelinePolicy = `{"requirements":[
 {"state":"ATTESTED","predicate":"test:*","max_age":"720h"},
 {"state":"PROMOTABLE","predicate":"review:*","max_age":"720h"}],
 "radar":{"max_age":"720h"}}`

func newTimeline(t *testing.T) *timeline {
	t.Helper()
	l := &timeline{t: t, path: storetest.NewFile(t),
		wall: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC), monotonic: time.Hour}
	l.open()
	t.Cleanup(func() { l.Close() })
	storetest.CreateAcme(t, l.Store)
	contract, err := policy.Parse([]byte(timelinePolicy))
	must.OK(t, err)
	_, err = l.SetPolicy(t.Context(), "acme", "api", contract, 0, "host")
	must.OK(t, err)
	return l
}

func (l *timeline) open() {
	l.t.Helper()
	s, err := store.Open(l.t.Context(), l.path, store.Options{
		Now: func() time.Time { return l.wall }, Monotonic: func() time.Duration { return l.monotonic },
		Logger: slog.New(slog.NewTextHandler(&l.log, nil)),
	})
	must.OK(l.t, err)
	l.Store = s
}

// restart opens the database again. A new process has another monotonic time.
func (l *timeline) restart() {
	l.t.Helper()
	must.OK(l.t, l.Close())
	l.monotonic = time.Minute
	l.open()
}

// jump moves the wall clock only.
func (l *timeline) jump(d time.Duration) {
	l.wall = l.wall.Add(d)
	l.settle()
}

// pass lets time pass on both clocks, second by second for up to two minutes, as Work
// and Tidy do.
func (l *timeline) pass(d time.Duration) {
	l.t.Helper()
	if long := d - 2*time.Minute; long > 0 {
		l.wall, l.monotonic, d = l.wall.Add(long), l.monotonic+long, 2*time.Minute
	}
	for ; d > 0; d -= time.Second {
		l.wall, l.monotonic = l.wall.Add(time.Second), l.monotonic+time.Second
		l.settle()
	}
}

func (l *timeline) settle() {
	l.t.Helper()
	must.OK(l.t, l.Settle(l.t.Context()))
	must.OK(l.t, l.Prune(l.t.Context()))
}

func (l *timeline) attest(commit int, predicate string) ledger.AttestationRecord {
	l.t.Helper()
	l.n++
	rec, _, err := l.send(commit, predicate)
	must.OK(l.t, err)
	return rec
}

// send sends the statement with the present number.
func (l *timeline) send(commit int, predicate string) (ledger.AttestationRecord, bool, error) {
	l.t.Helper()
	dn := must.Get(identity.ParseDN("cn=ci,ou=build,o=acme"))(l.t)
	payload := fmt.Appendf(nil, "statement %d", l.n)
	_, version, err := l.Keyring(l.t.Context(), "acme")
	must.OK(l.t, err)
	return l.Record(l.t.Context(), "acme", "api", &attestation.Attestation{
		Outcome: attestation.Outcome{Predicate: predicate, Result: ledger.Result{Status: ledger.Pass}},
		Commit:  sha(commit), PredicateType: attestation.ResultPredicateType,
		Signer:  identity.Signer{DN: dn, Identity: "idn_made", Key: sha256.Sum256([]byte(dn.CN))},
		Payload: payload, PayloadDigest: sha256.Sum256(payload),
		Envelope: []byte(`{"payload":"` + base64.StdEncoding.EncodeToString(payload) + `"}`),
	}, version)
}

// promote makes a commit PROMOTABLE.
func (l *timeline) promote(commit int) {
	l.t.Helper()
	l.attest(commit, "test:go")
	l.attest(commit, "review:code")
	l.wantState(commit, ledger.Promotable)
}

func (l *timeline) commit(commit int) ledger.Commit {
	l.t.Helper()
	c, err := l.Commit(l.t.Context(), "acme", "api", sha(commit))
	must.OK(l.t, err)
	return c
}

func (l *timeline) wantState(commit int, want ledger.State) {
	l.t.Helper()
	if c := l.commit(commit); c.State != want {
		l.t.Fatalf("commit %d is %s at %s, want %s", commit, c.State, l.Now(), want)
	}
}

// transitions returns the transitions of a commit, oldest first.
func (l *timeline) transitions(commit int) string {
	l.t.Helper()
	var steps []string
	for _, step := range l.commit(commit).Transitions {
		steps = append(steps, fmt.Sprintf("%s>%s by %s", step.From, step.To, step.Cause.Type))
	}
	return strings.Join(steps, ", ")
}

// A timedEvent is an event with its place in time.
type timedEvent struct {
	ID        string      `json:"id"`
	Timestamp ledger.Time `json:"timestamp"`
}

func (l *timeline) events() []timedEvent {
	l.t.Helper()
	page, err := l.Events(l.t.Context(), "acme", store.EventFilter{Query: store.Query{Limit: 500}})
	must.OK(l.t, err)
	events := make([]timedEvent, len(page.Data))
	for i, body := range page.Data {
		must.OK(l.t, json.Unmarshal(body, &events[i]))
	}
	return events
}

// wantOrder checks that ids ascend in the order of recording, that each is found, and
// that a list since any time contains everything recorded from then on.
func (l *timeline) wantOrder() {
	l.t.Helper()
	events := l.events()
	tail, err := l.Tail(l.t.Context(), "acme")
	must.OK(l.t, err)
	for i, e := range events {
		if i > 0 && e.ID <= events[i-1].ID {
			l.t.Errorf("event %d has id %s, after %s", i, e.ID, events[i-1].ID)
		}
		if seq, ok, err := tail.Seq(l.t.Context(), e.ID); err != nil || !ok || seq != int64(i) {
			l.t.Errorf("event %d is found at %d, %v, %v", i, seq, ok, err)
		}
	}

	oldest := l.attestations(store.AttestationFilter{Ascending: true})
	for i, a := range oldest {
		if i > 0 && a.ID <= oldest[i-1].ID {
			l.t.Errorf("attestation %s comes after %s", a.ID, oldest[i-1].ID)
		}
		if got, err := l.Attestation(l.t.Context(), "acme", "api", a.ID); err != nil || got.ID != a.ID {
			l.t.Errorf("attestation %s is not found: %v", a.ID, err)
		}
		for _, ascending := range []bool{false, true} {
			since := l.attestations(store.AttestationFilter{Since: a.RecordedAt, Ascending: ascending})
			for _, later := range oldest[i:] {
				if !slices.ContainsFunc(since, func(b ledger.AttestationRecord) bool { return b.ID == later.ID }) {
					l.t.Errorf("the list since %s misses %s of %s", a.RecordedAt, later.ID, later.RecordedAt)
				}
			}
		}
	}
}

// attestations lists attestations in pages of two.
func (l *timeline) attestations(f store.AttestationFilter) (list []ledger.AttestationRecord) {
	l.t.Helper()
	for f.Limit = 2; ; {
		page, err := l.Attestations(l.t.Context(), "acme", "api", f)
		must.OK(l.t, err)
		list = append(list, page.Data...)
		if f.Cursor = page.NextCursor; f.Cursor == "" {
			return list
		}
	}
}

// rows returns the number that a query returns.
func (l *timeline) rows(query string) (n int) {
	l.t.Helper()
	db := must.Get(sql.Open("sqlite", l.path))(l.t)
	defer db.Close()
	must.OK(l.t, db.QueryRow(query).Scan(&n))
	return n
}

// logged counts the lines of the log with a text.
func (l *timeline) logged(text string) int { return strings.Count(l.log.String(), text) }

func (l *timeline) wantNow(want time.Time, within time.Duration) {
	l.t.Helper()
	if off := l.Now().Std().Sub(want); off.Abs() > within {
		l.t.Errorf("the ledger's clock shows %s, want %s", l.Now(), want)
	}
}

const timelineHook = "https://ci.example.com/ledger"

// webhook creates a webhook for attestations.
func (l *timeline) webhook() string {
	l.t.Helper()
	w, err := l.CreateWebhook(l.t.Context(), "acme", "api", outbound.NewWebhook{URL: timelineHook,
		Events: []ledger.EventType{ledger.EventAttestation}}, outbound.NewWebhookSecret())
	must.OK(l.t, err)
	return w.ID
}

// fail claims the deliveries of a webhook that are due, and records a failure of each
// that is tried again after a time. It returns their number.
func (l *timeline) fail(hook string, retry time.Duration) int {
	l.t.Helper()
	_, due, err := l.Claim(l.t.Context(), hook, 100, 30*time.Second)
	must.OK(l.t, err)
	outcomes := make([]outbound.Outcome, len(due))
	for i, d := range due {
		outcomes[i] = outbound.Outcome{
			Webhook: hook, Delivery: d.ID, Status: outbound.DeliveryPending, RetryAt: l.Now().Add(retry), Tries: d.Tries,
			Lease:   d.Lease,
			Attempt: outbound.Attempt{At: l.Now(), Error: "500", Request: outbound.AttemptRequest{URL: timelineHook}},
		}
	}
	must.OK(l.t, l.RecordOutcomes(l.t.Context(), outcomes, 0))
	return len(due)
}
