package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
)

const hookURL = "https://ci.example.com/ledger"

func (b *bench) webhook(types ...ledger.EventType) ledger.Webhook {
	b.t.Helper()
	n := ledger.NewWebhook{URL: hookURL, Events: types}
	check(b.t, n.Check())
	w, err := b.CreateWebhook(b.t.Context(), "acme", "api", n, ledger.NewWebhookSecret())
	check(b.t, err)
	return w
}

func (b *bench) claim(webhook string, limit int) []ledger.DueDelivery {
	b.t.Helper()
	_, due, err := b.Claim(b.t.Context(), webhook, limit, 30*time.Second)
	check(b.t, err)
	return due
}

// outcome returns what comes of an attempt that is made now and answered with
// an HTTP status, by the schedule tried again after retry or, where that is 0,
// never.
func (b *bench) outcome(webhook string, d ledger.DueDelivery, status int, retry time.Duration) ledger.Outcome {
	o := ledger.Outcome{
		Webhook: webhook, Delivery: d.ID, Status: ledger.DeliverySucceeded, Tries: d.Tries, Lease: d.Lease,
		Attempt: ledger.Attempt{At: b.Now(), Request: ledger.AttemptRequest{URL: hookURL},
			Response: ledger.AttemptResponse{Status: status}},
	}
	if status == 200 {
		return o
	}
	o.Attempt.Error = fmt.Sprintf("the receiver answered %d", status)
	o.Status = ledger.DeliveryFailed
	switch {
	case status == 410:
		o.Disable = o.Attempt.Error
	case retry > 0:
		o.Status, o.RetryAt = ledger.DeliveryPending, b.Now().Add(retry)
	}
	return o
}

func (b *bench) record(o ledger.Outcome) {
	b.t.Helper()
	check(b.t, b.RecordOutcomes(b.t.Context(), []ledger.Outcome{o}, 5*24*time.Hour))
}

// settle records an attempt that was answered with an HTTP status.
func (b *bench) settle(webhook string, d ledger.DueDelivery, status int, retry time.Duration) {
	b.t.Helper()
	b.record(b.outcome(webhook, d, status, retry))
}

func (b *bench) change(webhook string, c ledger.WebhookChange) ledger.Webhook {
	b.t.Helper()
	w, err := b.ChangeWebhook(b.t.Context(), "acme", "api", webhook, c)
	check(b.t, err)
	return w
}

func (b *bench) delivery(webhook, id string) ledger.DeliveryRecord {
	b.t.Helper()
	d, err := b.Delivery(b.t.Context(), "acme", "api", webhook, id)
	check(b.t, err)
	return d
}

func (b *bench) redeliver(webhook, id string) ledger.Delivery {
	b.t.Helper()
	d, err := b.Redeliver(b.t.Context(), "acme", "api", webhook, id)
	check(b.t, err)
	return d
}

func (b *bench) replay(webhook string, since ledger.Time) int64 {
	b.t.Helper()
	queued, err := b.ReplayWebhook(b.t.Context(), "acme", "api", webhook, since)
	check(b.t, err)
	return queued
}

func (b *bench) deliveries(webhook string, f store.DeliveryFilter) []ledger.Delivery {
	b.t.Helper()
	var list []ledger.Delivery
	for f.Limit = 2; ; {
		page, err := b.Deliveries(b.t.Context(), "acme", "api", webhook, f)
		check(b.t, err)
		list = append(list, page.Data...)
		if f.Cursor = page.NextCursor; f.Cursor == "" {
			return list
		}
	}
}

func (b *bench) getWebhook(id string) ledger.Webhook {
	b.t.Helper()
	w, err := b.Webhook(b.t.Context(), "acme", "api", id)
	check(b.t, err)
	return w
}

// types tells the types of deliveries, in their order.
func types(due []ledger.DueDelivery) []ledger.EventType {
	var list []ledger.EventType
	for _, d := range due {
		list = append(list, d.Type)
	}
	return list
}

func (s suite) TestAnEventIsQueuedForTheWebhooksThatWantIt(t *testing.T) {
	b := s.newBench(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	_, err := b.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: "web"}, "host")
	check(t, err)
	other, err := b.CreateWebhook(
		t.Context(), "acme", "web", ledger.NewWebhook{URL: "https://x.example", Events: ledger.EventTypes()}, "whsec_x")
	check(t, err)
	usual, onlyState, paused := b.webhook(), b.webhook(ledger.EventState), b.webhook()
	inactive := false
	_, err = b.ChangeWebhook(t.Context(), "acme", "api", paused.ID, ledger.WebhookChange{Active: &inactive})
	check(t, err)
	b.TakeQueued()

	ci.attests(sha(0), "test:go", ledger.Pass) // DRAFT > VALIDATING > ATTESTED

	queued, _ := b.TakeQueued()
	slices.Sort(queued)
	if want := []string{usual.ID, onlyState.ID}; !slices.Equal(queued, want) {
		t.Errorf("queued for %v, want %v", queued, want)
	}
	for _, test := range []struct {
		name    string
		webhook string
		want    []ledger.EventType
	}{
		{"the usual types", usual.ID, []ledger.EventType{"attestation", "state", "state"}},
		{"one type", onlyState.ID, []ledger.EventType{"state", "state"}},
		{"paused", paused.ID, nil},
		{"of another repo", other.ID, nil},
	} {
		if got := types(b.claim(test.webhook, 10)); !slices.Equal(got, test.want) {
			t.Errorf("%s: claimed %v, want %v", test.name, got, test.want)
		}
	}
}

func (s suite) TestAChangedWebhookIsToldToWhoSends(t *testing.T) {
	b := s.newBench(t)
	w := b.webhook(ledger.EventAttestation)
	for _, test := range []struct {
		name string
		do   func()
		told bool
	}{
		{"a delivery", func() { b.signer("cn=ci,ou=build,o=acme").attests(sha(0), "test:go", ledger.Pass) }, false},
		{"another URL", func() { b.change(w.ID, ledger.WebhookChange{URL: new("https://other.example")}) }, true},
		{"the first URL", func() { b.change(w.ID, ledger.WebhookChange{URL: new(hookURL)}) }, true},
		{"other events", func() { b.change(w.ID, ledger.WebhookChange{Events: new([]ledger.EventType{ledger.EventState})}) },
			true},
		{"another secret", func() {
			_, err := b.RotateWebhook(t.Context(), "acme", "api", w.ID, "whsec_new", 0)
			check(t, err)
		}, true},
		{"disabled by 410", func() { b.settle(w.ID, b.claim(w.ID, 1)[0], 410, 0) }, true},
		{"removed", func() { check(t, b.DeleteWebhook(t.Context(), "acme", "api", w.ID)) }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			b.TakeQueued()
			test.do()
			select {
			case <-b.Queued():
			default:
				t.Error("no signal")
			}
			if _, changed := b.TakeQueued(); slices.Equal(changed, []string{w.ID}) != test.told {
				t.Errorf("told of %v", changed)
			}
		})
	}
}

func (s suite) TestADeliverySendsTheBytesStoredForTheEvent(t *testing.T) {
	b := s.newBench(t)
	w := b.webhook()
	b.signer("cn=ci,ou=build,o=acme").attests(sha(0), "test:go", ledger.Pass)
	events, err := b.Events(t.Context(), "acme", store.EventFilter{Query: store.Query{Limit: 10}})
	check(t, err)
	due := b.claim(w.ID, 10)
	if len(due) != len(events.Data) {
		t.Fatalf("%d deliveries for %d events", len(due), len(events.Data))
	}
	for i, d := range due {
		if string(d.Body) != string(events.Data[i]) {
			t.Errorf("delivery %d sends %s, want %s", i, d.Body, events.Data[i])
		}
	}
}

func (s suite) TestALeaseKeepsADeliveryFromOthersUntilItEnds(t *testing.T) {
	b := s.newBench(t)
	w := b.webhook()
	b.signer("cn=ci,ou=build,o=acme").attests(sha(0), "test:go", ledger.Pass)
	if first, second := b.claim(w.ID, 2), b.claim(w.ID, 2); len(first) != 2 || len(second) != 1 {
		t.Fatalf("claimed %d, then %d; want 2, then the third", len(first), len(second))
	}
	if due, err := b.DueWebhooks(t.Context()); err != nil || len(due) != 0 {
		t.Errorf("due while all are leased: %v, %v", due, err)
	}
	b.clock.advance(30 * time.Second)
	if due, err := b.DueWebhooks(t.Context()); err != nil || !slices.Equal(due, []string{w.ID}) {
		t.Errorf("due after the lease: %v, %v; want %s", due, err, w.ID)
	}
	again := b.claim(w.ID, 10)
	if len(again) != 3 {
		t.Fatalf("claimed %d after the lease, want 3", len(again))
	}
	check(t, b.Release(t.Context(), w.ID, []string{again[0].ID}))
	if released := b.claim(w.ID, 10); len(released) != 1 || released[0].ID != again[0].ID {
		t.Errorf("claimed %v after a release, want the one released", released)
	}
}

func (s suite) TestAttemptsAreRecordedAndRetriesWait(t *testing.T) {
	b := s.newBench(t)
	w := b.webhook(ledger.EventAttestation)
	b.signer("cn=ci,ou=build,o=acme").attests(sha(0), "test:go", ledger.Pass)
	d := b.claim(w.ID, 10)[0]
	failed := b.Now()
	b.settle(w.ID, d, 500, time.Minute)
	if since := b.getWebhook(w.ID).FailingSince; since != failed {
		t.Errorf("failing since %q, want %q", since, failed)
	}
	if early := b.claim(w.ID, 10); len(early) != 0 {
		t.Fatalf("claimed %v before the retry is due", early)
	}
	b.clock.advance(time.Minute)
	d = b.claim(w.ID, 10)[0]
	if d.Attempts != 1 || d.Tries != 1 {
		t.Errorf("the second claim tells of %d attempts, %d tries; want 1 and 1", d.Attempts, d.Tries)
	}
	b.settle(w.ID, d, 200, 0)
	if since := b.getWebhook(w.ID).FailingSince; since != 0 {
		t.Errorf("failing since %q after a success", since)
	}
	rec, err := b.Delivery(t.Context(), "acme", "api", w.ID, d.ID)
	check(t, err)
	if rec.Status != ledger.DeliverySucceeded || rec.Attempts != 2 || rec.NextAttemptAt != 0 || rec.LastStatus != 200 ||
		rec.LastError != "" {
		t.Errorf("the delivery is %+v, want it to have succeeded at the second attempt", rec.Delivery)
	}
	if len(rec.History) != 2 || rec.History[0].Number != 1 || rec.History[0].Response.Status != 500 ||
		rec.History[1].Response.Status != 200 {
		t.Errorf("history %+v, want a 500 and a 200", rec.History)
	}

	// What a second try that was under way came to changes nothing.
	b.settle(w.ID, d, 500, time.Minute)
	if d := b.deliveries(w.ID, store.DeliveryFilter{})[0]; d.Status != ledger.DeliverySucceeded || d.NextAttemptAt != 0 {
		t.Errorf("a late failure made it %+v", d)
	}
}

func (s suite) TestAWebhookIsDisabled(t *testing.T) {
	t.Run("by 410", func(t *testing.T) {
		b := s.newBench(t)
		w := b.webhook(ledger.EventAttestation)
		b.signer("cn=ci,ou=build,o=acme").attests(sha(0), "test:go", ledger.Pass)
		b.settle(w.ID, b.claim(w.ID, 1)[0], 410, 0)
		if w = b.getWebhook(w.ID); w.Active || w.DisabledReason != "the receiver answered 410" || w.DisabledAt != b.Now() {
			t.Errorf("after 410 it is %+v", w)
		}
	})
	t.Run("after five days of failure, and replay delivers what was missed", func(t *testing.T) {
		b := s.newBench(t)
		ci, w := b.signer("cn=ci,ou=build,o=acme"), b.webhook(ledger.EventAttestation)
		begin := b.Now()
		ci.attests(sha(0), "test:go", ledger.Pass)
		for day := range 6 {
			if active := b.getWebhook(w.ID).Active; !active {
				t.Fatalf("disabled after %d days", day-1)
			}
			b.settle(w.ID, b.claim(w.ID, 1)[0], 500, 24*time.Hour)
			b.clock.advance(24 * time.Hour)
		}
		w = b.getWebhook(w.ID)
		if w.Active || w.DisabledReason == "" {
			t.Fatalf("after five days it is %+v", w)
		}
		if due := b.claim(w.ID, 10); len(due) != 0 {
			t.Errorf("claimed %v of a disabled webhook", due)
		}
		ci.attests(sha(1), "test:go", ledger.Pass) // missed
		_, err := b.ReplayWebhook(t.Context(), "acme", "api", w.ID, begin)
		wantCode(t, err, ledger.CodeWebhookInactive)
		active := true
		w, err = b.ChangeWebhook(t.Context(), "acme", "api", w.ID, ledger.WebhookChange{Active: &active})
		check(t, err)
		if !w.Active || w.DisabledReason != "" || w.DisabledAt != 0 || w.FailingSince != 0 {
			t.Errorf("made active again it is %+v", w)
		}
		queued, err := b.ReplayWebhook(t.Context(), "acme", "api", w.ID, begin)
		check(t, err)
		if queued != 1 {
			t.Errorf("replay queued %d, want the one that was missed", queued)
		}
		if due := b.claim(w.ID, 10); len(due) != 2 {
			t.Errorf("claimed %d, want the one that waited and the one that was missed", len(due))
		}
	})
}

func (s suite) TestRotationKeepsThePreviousSecretForTheOverlap(t *testing.T) {
	b := s.newBench(t)
	w := b.webhook(ledger.EventAttestation)
	endpoint := func() ledger.Endpoint {
		e, _, err := b.Claim(t.Context(), w.ID, 1, time.Second)
		check(t, err)
		return e
	}
	first := endpoint().Secret
	rotated, err := b.RotateWebhook(t.Context(), "acme", "api", w.ID, "whsec_new", time.Hour)
	check(t, err)
	if want := b.Now().Add(time.Hour); rotated.PreviousSecretUntil != want {
		t.Errorf("the previous secret signs until %s, want %s", rotated.PreviousSecretUntil, want)
	}
	if e := endpoint(); e.Secret != "whsec_new" || e.PreviousSecret != first ||
		e.PreviousUntil != rotated.PreviousSecretUntil {
		t.Errorf("after the rotation: %+v", e)
	}
	b.clock.advance(time.Hour)
	if until := b.getWebhook(w.ID).PreviousSecretUntil; until != 0 {
		t.Errorf("after the overlap the previous secret signs until %s", until)
	}
	_, err = b.RotateWebhook(t.Context(), "acme", "api", w.ID, "whsec_newer", 0)
	check(t, err)
	if e := endpoint(); e.Secret != "whsec_newer" || e.PreviousSecret != "" {
		t.Errorf("after a rotation without overlap: %+v", e)
	}
}

func (s suite) TestPruning(t *testing.T) {
	b := s.newBench(t)
	ci, w, gone := b.signer("cn=ci,ou=build,o=acme"), b.webhook(ledger.EventAttestation),
		b.webhook(ledger.EventAttestation)
	for i := range 2 {
		ci.attests(sha(i), "test:go", ledger.Pass)
	}
	over := b.claim(w.ID, 1)[0]
	b.settle(w.ID, over, 200, 0)
	b.clock.advance(31 * 24 * time.Hour)
	ci.attests(sha(2), "test:go", ledger.Pass)
	check(t, b.DeleteWebhook(t.Context(), "acme", "api", gone.ID))
	check(t, b.Prune(t.Context()))

	list := b.deliveries(w.ID, store.DeliveryFilter{})
	if len(list) != 2 || slices.ContainsFunc(list, func(d ledger.Delivery) bool { return d.ID == over.ID }) {
		t.Errorf("left are %+v, want the pending and the new one", list)
	}
	_, err := b.Webhook(t.Context(), "acme", "api", gone.ID)
	wantCode(t, err, ledger.CodeNotFound)
	if due := b.claim(gone.ID, 10); len(due) != 0 {
		t.Errorf("claimed %v of a deleted webhook", due)
	}
}

// What counts is when a delivery ended, not when it was made.
func (s suite) TestWhatHasJustEndedIsKept(t *testing.T) {
	b := s.newBench(t)
	ci, w := b.signer("cn=ci,ou=build,o=acme"), b.webhook(ledger.EventAttestation)
	begin := b.Now()
	ci.attests(sha(0), "test:go", ledger.Pass)
	ci.attests(sha(1), "test:go", ledger.Pass)
	again := b.claim(w.ID, 1)[0]
	b.settle(w.ID, again, 200, 0)
	b.clock.advance(29 * 24 * time.Hour)
	b.redeliver(w.ID, again.ID)
	b.clock.advance(2 * 24 * time.Hour)
	check(t, b.Prune(t.Context())) // one waits since it was redelivered, one all along
	for _, d := range b.claim(w.ID, 2) {
		b.settle(w.ID, d, 200, 0)
	}
	for _, test := range []struct {
		name string
		wait time.Duration
		kept int
	}{{"just ended", 0, 2}, {"30 days later", 30 * 24 * time.Hour, 2}, {"and a moment", time.Millisecond, 0}} {
		b.clock.advance(test.wait)
		check(t, b.Prune(t.Context()))
		if list := b.deliveries(w.ID, store.DeliveryFilter{}); len(list) != test.kept {
			t.Errorf("%s: %d are left, want %d", test.name, len(list), test.kept)
		}
		if queued := b.replay(w.ID, begin); test.kept > 0 && queued != 0 {
			t.Errorf("%s: a replay sends %d again", test.name, queued)
		}
	}
}

func (s suite) TestARepoHasABoundOnItsWebhooks(t *testing.T) {
	b := s.newBench(t)
	for range 50 {
		b.webhook()
	}
	_, err := b.CreateWebhook(
		t.Context(), "acme", "api", ledger.NewWebhook{URL: "https://x.example", Events: ledger.EventTypes()}, "whsec_x")
	wantCode(t, err, ledger.CodeLimitReached)
}
