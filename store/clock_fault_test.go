package store_test

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store"
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
	l := &timeline{t: t, path: filepath.Join(t.TempDir(), "ledger.db"),
		wall: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC), monotonic: time.Hour}
	l.open()
	t.Cleanup(func() { l.Close() })
	_, err := l.CreateOrg(t.Context(), "acme")
	check(t, err)
	_, err = l.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: "api"}, "host")
	check(t, err)
	contract, err := policy.Parse([]byte(timelinePolicy))
	check(t, err)
	_, err = l.SetPolicy(t.Context(), "acme", "api", contract, 0, "host")
	check(t, err)
	return l
}

func (l *timeline) open() {
	l.t.Helper()
	s, err := store.Open(l.t.Context(), l.path, store.Options{
		Now: func() time.Time { return l.wall }, Monotonic: func() time.Duration { return l.monotonic },
		Logger: slog.New(slog.NewTextHandler(&l.log, nil)),
	})
	check(l.t, err)
	l.Store = s
}

// restart opens the database again. A new process has another monotonic time.
func (l *timeline) restart() {
	l.t.Helper()
	check(l.t, l.Close())
	l.monotonic = time.Minute
	l.open()
}

// jump moves the wall clock only.
func (l *timeline) jump(d time.Duration) {
	l.wall = l.wall.Add(d)
	l.settle()
}

// pass lets time pass on both clocks, second by second for up to two minutes, as Evaluate
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
	check(l.t, l.Settle(l.t.Context()))
	check(l.t, l.Prune(l.t.Context()))
}

func (l *timeline) attest(commit int, predicate string) ledger.AttestationRecord {
	l.t.Helper()
	l.n++
	dn, err := identity.ParseDN("cn=ci,ou=build,o=acme")
	check(l.t, err)
	payload := fmt.Appendf(nil, "statement %d", l.n)
	_, version, err := l.Keyring(l.t.Context(), "acme")
	check(l.t, err)
	rec, _, err := l.Record(l.t.Context(), "acme", "api", &attestation.Attestation{
		Commit: sha(commit), Predicate: predicate, PredicateType: attestation.ResultPredicateType,
		Result: ledger.Result{Status: ledger.Pass}, Signer: identity.Signer{DN: dn, Identity: "idn_made", Key: [32]byte{1}},
		Payload: payload, PayloadDigest: sha256.Sum256(payload),
		Envelope: []byte(`{"payload":"` + base64.StdEncoding.EncodeToString(payload) + `"}`),
	}, version)
	check(l.t, err)
	return rec
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
	check(l.t, err)
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
	check(l.t, err)
	events := make([]timedEvent, len(page.Data))
	for i, body := range page.Data {
		check(l.t, json.Unmarshal(body, &events[i]))
	}
	return events
}

// wantOrder checks that ids ascend in the order of recording, that each is found, and
// that a list since any time contains everything recorded from then on.
func (l *timeline) wantOrder() {
	l.t.Helper()
	events := l.events()
	tail, err := l.Tail(l.t.Context(), "acme")
	check(l.t, err)
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
		if i > 0 && (a.ID <= oldest[i-1].ID || a.RecordedAt < oldest[i-1].RecordedAt) {
			l.t.Errorf("attestation %s of %s comes after %s of %s", a.ID, a.RecordedAt, oldest[i-1].ID, oldest[i-1].RecordedAt)
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
		check(l.t, err)
		list = append(list, page.Data...)
		if f.Cursor = page.NextCursor; f.Cursor == "" {
			return list
		}
	}
}

// rows returns the number that a query returns.
func (l *timeline) rows(query string) (n int) {
	l.t.Helper()
	db, err := sql.Open("sqlite", l.path)
	check(l.t, err)
	defer db.Close()
	check(l.t, db.QueryRow(query).Scan(&n))
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
	w, err := l.CreateWebhook(l.t.Context(), "acme", "api", ledger.NewWebhook{URL: timelineHook,
		Events: []ledger.EventType{ledger.EventAttestation}}, ledger.NewWebhookSecret())
	check(l.t, err)
	return w.ID
}

// fail claims the deliveries of a webhook that are due, and records a failure of each
// that is tried again after a time. It returns their number.
func (l *timeline) fail(hook string, retry time.Duration) int {
	l.t.Helper()
	_, due, err := l.Claim(l.t.Context(), hook, 100, 30*time.Second)
	check(l.t, err)
	outcomes := make([]ledger.Outcome, len(due))
	for i, d := range due {
		outcomes[i] = ledger.Outcome{
			Webhook: hook, Delivery: d.ID, Status: ledger.DeliveryPending, RetryAt: l.Now().Add(retry), Tries: d.Tries,
			Lease:   d.Lease,
			Attempt: ledger.Attempt{At: l.Now(), Error: "500", Request: ledger.AttemptRequest{URL: timelineHook}},
		}
	}
	check(l.t, l.RecordOutcomes(l.t.Context(), outcomes, 0))
	return len(due)
}

// TestFaultClockGoesBackAnHour checks that the ledger's time goes on while the wall clock
// is an hour behind, and that nothing waits for the hour to pass.
func TestFaultClockGoesBackAnHour(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart %v", restart), func(t *testing.T) {
			l := newTimeline(t)
			hook := l.webhook()
			l.attest(1, "test:go")
			if n := l.fail(hook, 5*time.Second); n != 1 {
				t.Fatalf("claimed %d deliveries, want 1", n)
			}

			before := l.Now()
			l.jump(-time.Hour)
			if restart {
				l.restart()
			}
			l.attest(1, "review:code")
			if l.Now() < before {
				t.Errorf("the ledger's clock went back from %s to %s", before, l.Now())
			}
			if got := l.WallTime(); got != ledger.TimeOf(l.wall) {
				t.Errorf("WallTime is %s, want %s", got, l.wall)
			}
			if lead := l.ClockStatus().Lead; lead < 59*time.Minute || lead > time.Hour {
				t.Errorf("the lead is %v", lead)
			}
			l.pass(10 * time.Second)
			if n := l.fail(hook, 5*time.Second); n != 2 {
				t.Errorf("%d deliveries are due, want the retry and the new one", n)
			}
			l.promote(2)
			l.wantOrder()

			l.pass(3 * time.Hour)
			l.promote(3)
			l.wantNow(l.wall, 0)
			if lead := l.ClockStatus().Lead; lead != 0 {
				t.Errorf("the lead is %v after three hours", lead)
			}
			l.wantOrder()
			begins := 1
			if restart {
				begins = 2 // one per process
			}
			if l.logged("the system clock went back") != begins || l.logged("caught up with") != 1 {
				t.Errorf("want one message per begin and end:\n%s", l.log.String())
			}
		})
	}
}

// TestFaultClockJumpsBriefly checks that a wrong clock that is put right within a minute
// leaves no trace.
func TestFaultClockJumpsBriefly(t *testing.T) {
	for _, jump := range []time.Duration{10 * day, 40 * day, -40 * day} {
		t.Run(jump.String(), func(t *testing.T) {
			l := newTimeline(t)
			ctx := t.Context()
			token, err := l.CreateToken(ctx, "acme", ledger.NewToken{Name: "me", Scope: ledger.Read}, [32]byte{1})
			check(t, err)
			check(t, l.CreateSession(ctx, token.ID, [32]byte{2}, l.Now().Add(12*time.Hour)))
			_, _, err = l.Register(ctx, "acme", "api", sha(1), ledger.Registration{Branch: "one", Changes: changeOf("p.go", 10)})
			check(t, err)
			hook := l.webhook()
			l.promote(1)
			if n := l.fail(hook, 5*time.Hour); n != 2 {
				t.Fatalf("claimed %d deliveries, want 2", n)
			}
			started := l.wall.Add(-l.monotonic)

			l.jump(jump)
			l.promote(2)
			l.pass(50 * time.Second)
			l.promote(3)
			l.wantNow(started.Add(l.monotonic), 0)
			if s := l.ClockStatus(); !s.Unproven || s.Lead != -jump {
				t.Errorf("status is %+v", s)
			}
			if got := l.WallTime(); got != l.Now() {
				t.Errorf("WallTime is %s, want %s", got, l.Now())
			}
			l.jump(-jump)
			l.pass(2 * time.Minute)

			l.wantState(1, ledger.Promotable)
			if l.commit(1).InFlight != true {
				t.Error("the tip is no longer in flight")
			}
			l.wantNow(started.Add(l.monotonic), 0)
			for _, e := range l.events() {
				if e.Timestamp > l.Now() || e.Timestamp < ledger.TimeOf(started.Add(time.Hour)) {
					t.Errorf("event %s has the time %s", e.ID, e.Timestamp)
				}
			}
			if n := l.fail(hook, 5*time.Hour); n != 4 {
				t.Errorf("%d deliveries are due, want those of commits 2 and 3", n)
			}
			if _, expires, err := l.SessionToken(ctx, [32]byte{2}); err != nil || expires <= l.Now() {
				t.Errorf("the session ended at %s: %v", expires, err)
			}
			l.wantOrder()
			if s := l.ClockStatus(); s != (store.ClockStatus{}) {
				t.Errorf("status is %+v", s)
			}
		})
	}
}

// TestFaultClockJumpsForGood checks that a jump that holds is followed after a minute.
func TestFaultClockJumpsForGood(t *testing.T) {
	l := newTimeline(t)
	l.promote(1)
	l.jump(40 * day)
	l.pass(59 * time.Second)
	l.wantState(1, ledger.Promotable)
	l.pass(5 * time.Second)
	l.wantState(1, ledger.Validating)
	l.wantNow(l.wall, 0)
	l.promote(2)
	l.wantOrder()
}

// wrongFor40Days is the story of a clock that is 40 days ahead for an hour. Then restart
// and the clock going right happen in the given order.
func wrongFor40Days(t *testing.T, putRight func(*timeline)) {
	l := newTimeline(t)
	ctx := t.Context()
	token, err := l.CreateToken(ctx, "acme", ledger.NewToken{Name: "me", Scope: ledger.Read,
		ExpiresAt: l.Now().Add(90 * day)}, [32]byte{1})
	check(t, err)
	hook := l.webhook()
	l.promote(1)
	if n := l.fail(hook, 24*time.Hour); n != 2 {
		t.Fatalf("claimed %d deliveries, want 2", n)
	}
	right := l.wall.Add(-l.monotonic)
	passed := l.monotonic

	l.jump(40 * day)
	l.pass(time.Hour)
	l.wantState(1, ledger.Validating) // its evidence is expired
	l.promote(2)
	check(t, l.CreateSession(ctx, token.ID, [32]byte{2}, l.Now().Add(12*time.Hour)))
	l.TouchToken(token.ID)
	_, _, err = l.Register(ctx, "acme", "api", sha(4), ledger.Registration{Branch: "four", Changes: changeOf("p.go", 10)})
	check(t, err)
	if n := l.fail(hook, 5*time.Second); n != 4 {
		t.Fatalf("claimed %d deliveries, want 4", n)
	}
	l.attest(5, "test:go")
	_, leased, err := l.Claim(ctx, hook, 10, 30*time.Second)
	check(t, err)
	if len(leased) != 1 {
		t.Fatalf("claimed %d deliveries, want 1", len(leased))
	}

	putRight(l)
	right = right.Add(passed + time.Hour)
	l.pass(2 * time.Minute)
	l.wantNow(l.wall, 0)
	l.wantNow(right, 10*time.Minute)

	// What fell rises, with the same cause.
	l.wantState(1, ledger.Promotable)
	want := "DRAFT>VALIDATING by attestation, VALIDATING>ATTESTED by attestation, ATTESTED>PROMOTABLE by attestation, " +
		"PROMOTABLE>VALIDATING by expiry, VALIDATING>ATTESTED by expiry, ATTESTED>PROMOTABLE by expiry"
	if got := l.transitions(1); got != want {
		t.Errorf("transitions are\n%s\nwant\n%s", got, want)
	}
	steps := l.commit(1).Transitions
	if steps[3].Cause != steps[5].Cause || steps[5].Cause.ID == "" {
		t.Errorf("it fell by %+v and rose by %+v", steps[3].Cause, steps[5].Cause)
	}

	if n := l.rows("SELECT count(*) FROM expirations"); n != 0 {
		t.Errorf("%d expirations were not undone", n)
	}

	// New records have right times, and their ids go on.
	l.promote(3)
	l.wantOrder()
	events := l.events()
	if last := events[len(events)-1]; last.Timestamp.Std().Sub(l.wall).Abs() > time.Minute {
		t.Errorf("a new event has the time %s", last.Timestamp)
	}
	for _, a := range l.attestations(store.AttestationFilter{}) {
		if a.RecordedAt > l.Now() {
			t.Errorf("attestation %s was recorded at %s, which is still to come", a.ID, a.RecordedAt)
		}
	}
	if s := l.ClockStatus(); s.Lead != 0 || s.Unproven || s.StampLead < 39*day || s.StampLead > 40*day {
		t.Errorf("status is %+v", s)
	}

	// Sessions, tokens, tips and deliveries do not wait for the wrong time.
	if _, expires, err := l.SessionToken(ctx, [32]byte{2}); err != nil || expires > l.Now().Add(12*time.Hour) {
		t.Errorf("the session ends at %s: %v", expires, err)
	}
	got, err := l.TokenByHash(ctx, [32]byte{1})
	check(t, err)
	if got.LastUsedAt == 0 || got.LastUsedAt > l.Now() {
		t.Errorf("the token was last used at %s", got.LastUsedAt)
	}
	if n := l.fail(hook, 5*time.Second); n != 7 {
		t.Errorf("%d deliveries are due, want 7", n)
	}
	if n := l.fail(hook, 5*time.Second); n != 0 {
		t.Errorf("%d deliveries are due too early", n)
	}
	l.pass(5 * time.Second)
	if n := l.fail(hook, 5*time.Second); n != 7 {
		t.Errorf("%d deliveries are due 5 s later, want 7", n)
	}

	// A restart changes nothing of this.
	before := l.Now()
	l.restart()
	if l.Now() != before {
		t.Errorf("the restart moved the clock from %s to %s", before, l.Now())
	}
	l.promote(6)
	l.wantOrder()

	// All evidence lives for 30 days of the right time, the one of the wrong time too.
	l.pass(29 * day)
	for commit := 1; commit <= 3; commit++ {
		l.wantState(commit, ledger.Promotable)
	}
	if !l.commit(4).InFlight {
		t.Error("the tip is no longer in flight after 29 days")
	}
	l.pass(2 * day)
	for commit := 1; commit <= 3; commit++ {
		l.wantState(commit, ledger.Validating)
	}
	if l.commit(4).InFlight {
		t.Error("the tip is still in flight after 31 days")
	}

	// The ids and the clock meet again.
	l.pass(10 * day)
	l.promote(7)
	l.wantOrder()
	if s := l.ClockStatus(); s != (store.ClockStatus{}) {
		t.Errorf("status is %+v", s)
	}
	l.restart()
	l.wantNow(l.wall, time.Second)
}

func TestFaultClockIsPutRight(t *testing.T) {
	for name, putRight := range map[string]func(*timeline){
		"while it runs": func(l *timeline) { l.jump(-40 * day) },
		"while it is stopped": func(l *timeline) {
			l.wall = l.wall.Add(-40 * day)
			l.restart()
		},
		"after a restart with the wrong clock": func(l *timeline) {
			l.restart()
			l.pass(time.Minute)
			l.jump(-40 * day)
		},
		"and a restart within the minute": func(l *timeline) {
			l.jump(-40 * day)
			l.pass(30 * time.Second)
			l.restart()
		},
		"with only short processes": func(l *timeline) {
			l.wall = l.wall.Add(-40 * day)
			for range 13 {
				l.restart()
				l.pass(5 * time.Second)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { wrongFor40Days(t, putRight) })
	}
}

// TestFaultForgottenTipsReturn checks that tips which were forgotten while the clock was
// ahead are compared and block again.
func TestFaultForgottenTipsReturn(t *testing.T) {
	l := newTimeline(t)
	ctx := t.Context()
	contract, err := policy.Parse([]byte(strings.Replace(timelinePolicy, `"radar":{`, `"radar":{"block":"LOW",`, 1)))
	check(t, err)
	_, err = l.SetPolicy(ctx, "acme", "api", contract, 0, "host")
	check(t, err)
	push := func(commit int, branch, file string, line int) {
		t.Helper()
		_, _, err := l.Register(ctx, "acme", "api", sha(commit),
			ledger.Registration{Branch: branch, Changes: changeOf(file, line)})
		check(t, err)
		l.attest(commit, "test:go")
		l.attest(commit, "review:code")
	}
	push(1, "one", "p.go", 10)
	push(2, "two", "p.go", 11) // gives way to one
	push(3, "three", "q.go", 10)
	push(4, "three", "q.go", 10) // supersedes 3
	check(t, l.Withdraw(ctx, "acme", "api", sha(4)))
	l.wantState(1, ledger.Promotable)
	l.wantState(2, ledger.Attested)

	l.jump(40 * day)
	l.pass(time.Hour)
	if l.commit(1).InFlight || l.commit(2).InFlight {
		t.Fatal("the tips are still in flight")
	}
	push(5, "two", "p.go", 11) // replaces 2, which is forgotten
	l.wantState(5, ledger.Promotable)
	l.jump(-40 * day)
	l.pass(2 * time.Minute)

	for commit, want := range map[int]bool{1: true, 2: false, 3: false, 4: false, 5: true} {
		if got := l.commit(commit).InFlight; got != want {
			t.Errorf("commit %d in flight: %v, want %v", commit, got, want)
		}
	}
	l.wantState(1, ledger.Promotable)
	l.wantState(5, ledger.Attested)
}

// TestFaultJumpDisablesNoWebhook checks that the time by which the clock jumps is not time
// in which a webhook fails.
func TestFaultJumpDisablesNoWebhook(t *testing.T) {
	l := newTimeline(t)
	hook := l.webhook()
	l.attest(1, "test:go")
	fail := func() bool {
		t.Helper()
		_, due, err := l.Claim(t.Context(), hook, 1, 30*time.Second)
		check(t, err)

		check(t, l.RecordOutcomes(t.Context(), []ledger.Outcome{{
			Webhook: hook, Delivery: due[0].ID, Status: ledger.DeliveryPending, RetryAt: l.Now().Add(time.Second),
			Tries: due[0].Tries, Lease: due[0].Lease,
			Attempt: ledger.Attempt{At: l.Now(), Error: "500", Request: ledger.AttemptRequest{URL: timelineHook}},
		}}, 5*day))
		w, err := l.Webhook(t.Context(), "acme", "api", hook)
		check(t, err)
		l.pass(time.Second)
		return w.Active
	}

	for range 10 {
		fail()
	}
	l.jump(10 * day)
	l.pass(time.Minute)
	if !fail() {
		t.Error("the webhook is disabled after failing for a minute")
	}
	l.pass(5 * day)
	if fail() {
		t.Error("the webhook is active after failing for five days")
	}
}

// TestFaultStampsOfTwoProcesses checks that ids ascend while they are ahead of the clock and
// two processes write.
func TestFaultStampsOfTwoProcesses(t *testing.T) {
	l := newTimeline(t)
	l.jump(40 * day)
	l.pass(2 * time.Minute)
	l.attest(1, "test:go")
	l.jump(-40 * day)
	l.pass(2 * time.Minute)

	first := l.Store
	l.open()
	defer func() { check(t, l.Close()); l.Store = first }()
	second := l.Store
	for n := range 6 {
		l.Store = []*store.Store{first, second}[n%2]
		for range 5 {
			l.attest(1, "test:go")
		}
		l.pass(time.Second)
		l.Store = []*store.Store{first, second}[1-n%2]
		l.pass(time.Second)
	}
	l.wantOrder()
}

// TestFaultExpirationsAreForgotten checks that the log of expired evidence does not grow
// forever.
func TestFaultExpirationsAreForgotten(t *testing.T) {
	l := newTimeline(t)
	rows := func() int { return l.rows("SELECT count(*) FROM expirations") }

	for commit := 1; commit <= 3; commit++ {
		l.promote(commit)
	}
	l.pass(31 * day)
	if n := rows(); n != 3 {
		t.Errorf("the log has %d rows, want one per commit", n)
	}
	l.pass(88 * day)
	if n := rows(); n != 3 {
		t.Errorf("the log has %d rows after 88 days, want 3", n)
	}
	l.pass(4 * day)
	if n := rows(); n != 0 {
		t.Errorf("the log has %d rows after 92 days, want none", n)
	}
}

// ahead has the clock be 40 days ahead for an hour, in which during runs, and puts it right.
func (l *timeline) ahead(during func()) {
	l.t.Helper()
	l.jump(40 * day)
	l.pass(time.Hour)
	during()
	l.jump(-40 * day)
	l.pass(time.Minute)
	l.wantNow(l.wall, 0)
}

// TestFaultShortProcessesPutTheClockRight checks that commands which run for seconds go back
// with the clock once it has been behind for a minute, and not before.
func TestFaultShortProcessesPutTheClockRight(t *testing.T) {
	l := newTimeline(t)
	l.jump(40 * day)
	l.pass(2 * time.Minute)
	l.attest(1, "test:go")

	for range 2 {
		l.wall = l.wall.Add(-40 * day)
		l.restart()
		if s := l.ClockStatus(); !s.Unproven || s.Lead < 39*day {
			t.Errorf("a process believed a clock that is far behind: %+v", s)
		}
		l.wall = l.wall.Add(40 * day) // as in the first minute after a boot
		l.restart()
		l.wantNow(l.wall, time.Second)
		l.pass(2 * time.Minute)
	}

	l.wall = l.wall.Add(-40 * day)
	l.restart()
	l.wall = l.wall.Add(59 * time.Second)
	l.restart()
	if !l.ClockStatus().Unproven {
		t.Error("a process believed the clock after 59 seconds")
	}
	l.wall = l.wall.Add(time.Second)
	l.restart()
	l.wantNow(l.wall, 0)
	l.settle()
	if n := l.logged("corrected the times"); n != 1 {
		t.Errorf("the times were corrected %d times, want once", n)
	}

	l.attest(1, "test:go")
	for range 3 {
		l.restart()
		l.wantNow(l.wall, 0)
		l.settle()
	}
	l.wantOrder()
	if n := l.logged("corrected the times"); n != 1 {
		t.Errorf("the times were corrected %d times, want once", n)
	}
}

// TestFaultRestartAfterIDsWithoutEvents checks that the clock continues after a restart from
// the time of a token, which has no event.
func TestFaultRestartAfterIDsWithoutEvents(t *testing.T) {
	l := newTimeline(t)
	l.pass(time.Hour)
	token, err := l.CreateToken(t.Context(), "acme", ledger.NewToken{Name: "me", Scope: ledger.Read}, [32]byte{1})
	check(t, err)
	l.wall = l.wall.Add(-time.Hour)
	l.restart()
	next, err := l.CreateToken(t.Context(), "acme", ledger.NewToken{Name: "me", Scope: ledger.Read}, [32]byte{2})
	check(t, err)
	if next.ID <= token.ID || next.CreatedAt < token.CreatedAt {
		t.Errorf("%s of %s comes after %s of %s", next.ID, next.CreatedAt, token.ID, token.CreatedAt)
	}
}

// TestFaultEvidenceAgesOnceOnly checks that a second accident does not make evidence younger
// that was recorded after the first one.
func TestFaultEvidenceAgesOnceOnly(t *testing.T) {
	l := newTimeline(t)
	l.ahead(func() { l.attest(1, "test:go") })
	l.promote(2)
	l.pass(20 * day)
	l.wantState(2, ledger.Promotable)
	l.jump(60 * day)
	l.pass(time.Hour)
	l.attest(3, "test:go")
	l.jump(-60 * day)
	l.pass(time.Minute)
	l.wantState(2, ledger.Promotable)
	l.pass(11 * day)
	l.wantState(2, ledger.Validating)
	l.wantOrder()
}

// TestFaultRightRetriesKeepTheirTime checks that putting the clock right makes only those
// deliveries due that were scheduled by the wrong time.
func TestFaultRightRetriesKeepTheirTime(t *testing.T) {
	l := newTimeline(t)
	early, late := l.webhook(), l.webhook()
	l.attest(1, "test:go")
	if n := l.fail(early, 24*time.Hour); n != 1 {
		t.Fatalf("claimed %d deliveries, want 1", n)
	}
	l.ahead(func() {
		_, due, err := l.Claim(t.Context(), late, 10, 30*time.Second)
		check(t, err)
		if len(due) != 1 {
			t.Fatalf("claimed %d deliveries, want 1", len(due))
		}
	})

	if n := l.fail(early, 24*time.Hour); n != 0 {
		t.Error("a retry is due 23 hours early")
	}
	if n := l.fail(late, time.Hour); n != 0 {
		t.Error("a lease ended while the attempt may be running")
	}
	l.pass(time.Minute)
	if n := l.fail(late, time.Hour); n != 1 {
		t.Error("the lease has not ended a minute later")
	}
	l.pass(day)
	if n := l.fail(early, 24*time.Hour); n != 1 {
		t.Error("the retry is not due after 24 hours")
	}
}

// TestFaultWebhookFailsAfterTheClockIsRight checks that failures count again once the clock is
// right, if the webhook was changed or failed while the clock was ahead.
func TestFaultWebhookFailsAfterTheClockIsRight(t *testing.T) {
	for _, failsBefore := range []bool{false, true} {
		l := newTimeline(t)
		hook := l.webhook()
		l.ahead(func() {
			_, err := l.ChangeWebhook(t.Context(), "acme", "api", hook, ledger.WebhookChange{Active: new(false)})
			check(t, err)
			_, err = l.ChangeWebhook(t.Context(), "acme", "api", hook, ledger.WebhookChange{Active: new(true)})
			check(t, err)
			if failsBefore {
				l.attest(1, "test:go")
				l.fail(hook, time.Second)
			}
		})

		l.attest(1, "test:go")
		for range 7 {
			_, due, err := l.Claim(t.Context(), hook, 1, 30*time.Second)
			check(t, err)
			check(t, l.RecordOutcomes(t.Context(), []ledger.Outcome{{
				Webhook: hook, Delivery: due[0].ID, Status: ledger.DeliveryPending, RetryAt: l.Now(),
				Tries: due[0].Tries, Lease: due[0].Lease,
				Attempt: ledger.Attempt{At: l.Now(), Error: "500", Request: ledger.AttemptRequest{URL: timelineHook}},
			}}, 5*day))
			l.pass(day)
			if w, err := l.Webhook(t.Context(), "acme", "api", hook); err == nil && !w.Active {
				break
			}
		}
		w, err := l.Webhook(t.Context(), "acme", "api", hook)
		check(t, err)
		if w.Active {
			t.Errorf("fails before %v: the webhook is active after failing for a week", failsBefore)
		}
	}
}
