package webhooks

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

const hookURL = "https://ci.example.com/ledger"

func (fx *fixture) webhook(types ...ledger.EventType) outbound.Webhook {
	fx.T.Helper()
	n := outbound.NewWebhook{URL: hookURL, Events: types}
	must.OK(fx.T, n.Check())
	w, err := fx.CreateWebhook(fx.T.Context(), "acme", "api", n, outbound.NewWebhookSecret())
	must.OK(fx.T, err)
	return w
}

func (fx *fixture) claim(webhook string, limit int) []outbound.DueDelivery {
	fx.T.Helper()
	_, due, err := fx.Claim(fx.T.Context(), webhook, limit, 30*time.Second)
	must.OK(fx.T, err)
	return due
}

// outcome returns the outcome of an attempt now whose response has an HTTP status. If
// the attempt failed, the next one is due after retry; 0 means no retry.
func (fx *fixture) outcome(webhook string, d outbound.DueDelivery, status int, retry time.Duration) outbound.Outcome {
	o := outbound.Outcome{
		Webhook: webhook, Delivery: d.ID, Status: outbound.DeliverySucceeded, Tries: d.Tries, Lease: d.Lease,
		Attempt: outbound.Attempt{At: fx.Now(), Request: outbound.AttemptRequest{URL: hookURL},
			Response: outbound.AttemptResponse{Status: status}},
	}
	if status == 200 {
		return o
	}
	o.Attempt.Error = fmt.Sprintf("the receiver returned %d", status)
	o.Status = outbound.DeliveryFailed
	switch {
	case status == 410:
		o.Disable = o.Attempt.Error
	case retry > 0:
		o.Status, o.RetryAt = outbound.DeliveryPending, fx.Now().Add(retry)
	}
	return o
}

func (fx *fixture) record(o outbound.Outcome) {
	fx.T.Helper()
	must.OK(fx.T, fx.RecordOutcomes(fx.T.Context(), []outbound.Outcome{o}, 5*24*time.Hour))
}

// settle records the outcome of an attempt, as outcome returns it.
func (fx *fixture) settle(webhook string, d outbound.DueDelivery, status int, retry time.Duration) {
	fx.T.Helper()
	fx.record(fx.outcome(webhook, d, status, retry))
}

func (fx *fixture) change(webhook string, c outbound.WebhookChange) outbound.Webhook {
	fx.T.Helper()
	w, err := fx.ChangeWebhook(fx.T.Context(), "acme", "api", webhook, c)
	must.OK(fx.T, err)
	return w
}

func (fx *fixture) delivery(webhook, id string) outbound.DeliveryRecord {
	fx.T.Helper()
	d, err := fx.Delivery(fx.T.Context(), "acme", "api", webhook, id)
	must.OK(fx.T, err)
	return d
}

func (fx *fixture) redeliver(webhook, id string) outbound.Delivery {
	fx.T.Helper()
	d, err := fx.Redeliver(fx.T.Context(), "acme", "api", webhook, id)
	must.OK(fx.T, err)
	return d
}

func (fx *fixture) replay(webhook string, since ledger.Time) int64 {
	fx.T.Helper()
	queued, err := fx.ReplayWebhook(fx.T.Context(), "acme", "api", webhook, since)
	must.OK(fx.T, err)
	return queued
}

func (fx *fixture) deliveries(webhook string, f store.DeliveryFilter) []outbound.Delivery {
	fx.T.Helper()
	var list []outbound.Delivery
	for f.Limit = 2; ; {
		page, err := fx.Deliveries(fx.T.Context(), "acme", "api", webhook, f)
		must.OK(fx.T, err)
		list = append(list, page.Data...)
		if f.Cursor = page.NextCursor; f.Cursor == "" {
			return list
		}
	}
}

func (fx *fixture) getWebhook(id string) outbound.Webhook {
	fx.T.Helper()
	w, err := fx.Webhook(fx.T.Context(), "acme", "api", id)
	must.OK(fx.T, err)
	return w
}

// types returns the event types of deliveries, in order.
func types(due []outbound.DueDelivery) []ledger.EventType {
	var list []ledger.EventType
	for _, d := range due {
		list = append(list, d.Type)
	}
	return list
}

func (s suite) TestAnEventIsQueuedForMatchingWebhooks(t *testing.T) {
	fx := s.newFixture(t)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	_, err := fx.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: "web"}, "host")
	must.OK(t, err)
	other, err := fx.CreateWebhook(
		t.Context(), "acme", "web", outbound.NewWebhook{URL: "https://x.example",
			Events: ledger.EventTypesFor(ledger.Read)}, "whsec_x")
	must.OK(t, err)
	all, onlyState, inactive := fx.webhook(), fx.webhook(ledger.EventState), fx.webhook()
	last := fx.webhook(ledger.EventAttestation)
	_, err = fx.ChangeWebhook(t.Context(), "acme", "api", inactive.ID, outbound.WebhookChange{Active: new(false)})
	must.OK(t, err)
	fx.TakeQueued()

	ci.Attest(sha(0), "test:go", ledger.Pass) // DRAFT > VALIDATING > ATTESTED

	queued, _ := fx.TakeQueued()
	slices.Sort(queued)
	if want := []string{all.ID, onlyState.ID, last.ID}; !slices.Equal(queued, want) {
		t.Errorf("queued for %v, want %v", queued, want)
	}

	for _, test := range []struct {
		name    string
		webhook string
		want    []ledger.EventType
	}{
		{"default types", all.ID, []ledger.EventType{"attestation", "state", "state"}},
		{"one type", onlyState.ID, []ledger.EventType{"state", "state"}},
		{"another type", last.ID, []ledger.EventType{"attestation"}},
		{"inactive", inactive.ID, nil},
		{"of another repo", other.ID, nil},
	} {
		if got := types(fx.claim(test.webhook, 10)); !slices.Equal(got, test.want) {
			t.Errorf("%s: claimed %v, want %v", test.name, got, test.want)
		}
	}
}

func (s suite) TestAChangeOfAWebhookIsSignalled(t *testing.T) {
	fx := s.newFixture(t)
	w := fx.webhook(ledger.EventAttestation)

	for _, test := range []struct {
		name    string
		do      func()
		changed bool
	}{
		{"a delivery", func() { fx.NewSigner("cn=ci,ou=build,o=acme").Attest(sha(0), "test:go", ledger.Pass) }, false},
		{"another URL", func() { fx.change(w.ID, outbound.WebhookChange{URL: new("https://other.example")}) }, true},
		{"the previous URL", func() { fx.change(w.ID, outbound.WebhookChange{URL: new(hookURL)}) }, true},
		{"other events", func() {
			fx.change(w.ID, outbound.WebhookChange{Events: new([]ledger.EventType{ledger.EventState})})
		},
			true},
		{"another secret", func() {
			_, err := fx.RotateWebhook(t.Context(), "acme", "api", w.ID, "whsec_new", 0)
			must.OK(t, err)
		}, true},
		{"disabled by 410", func() { fx.settle(w.ID, fx.claim(w.ID, 1)[0], 410, 0) }, true},
		{"removed", func() { must.OK(t, fx.DeleteWebhook(t.Context(), "acme", "api", w.ID)) }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			fx.TakeQueued()
			test.do()
			select {
			case <-fx.Queued():
			default:
				t.Error("no signal")
			}
			if _, changed := fx.TakeQueued(); slices.Equal(changed, []string{w.ID}) != test.changed {
				t.Errorf("changed webhooks: %v", changed)
			}
		})
	}
}

func (s suite) TestADeliverySendsTheStoredBytesOfTheEvent(t *testing.T) {
	fx := s.newFixture(t)
	w := fx.webhook()
	fx.NewSigner("cn=ci,ou=build,o=acme").Attest(sha(0), "test:go", ledger.Pass)
	events, err := fx.Events(
		t.Context(), "acme", store.EventFilter{Query: store.Query{Limit: 10}, Types: ledger.DefaultEventTypes()})
	must.OK(t, err)
	due := fx.claim(w.ID, 10)
	if len(due) != len(events.Data) {
		t.Fatalf("%d deliveries for %d events", len(due), len(events.Data))
	}
	for i, d := range due {
		if string(d.Body) != string(events.Data[i]) {
			t.Errorf("delivery %d sends %s, want %s", i, d.Body, events.Data[i])
		}
	}
}

func (s suite) TestALeasedDeliveryIsNotClaimedUntilItExpires(t *testing.T) {
	fx := s.newFixture(t)
	w := fx.webhook()
	fx.NewSigner("cn=ci,ou=build,o=acme").Attest(sha(0), "test:go", ledger.Pass)
	first, second := fx.claim(w.ID, 2), fx.claim(w.ID, 2)
	if len(first) != 2 || len(second) != 1 {
		t.Fatalf("claimed %d, then %d; want 2, then 1", len(first), len(second))
	}
	if due, err := fx.DueWebhooks(t.Context()); err != nil || len(due) != 0 {
		t.Errorf("due while all are leased: %v, %v", due, err)
	}

	fx.Clock.Advance(30 * time.Second)
	if due, err := fx.DueWebhooks(t.Context()); err != nil || !slices.Equal(due, []string{w.ID}) {
		t.Errorf("due after the lease: %v, %v; want %s", due, err, w.ID)
	}

	again := fx.claim(w.ID, 10)
	if len(again) != 3 {
		t.Fatalf("claimed %d after the lease, want 3", len(again))
	}
	must.OK(t, fx.Release(t.Context(), w.ID, first)) // too late
	if others := fx.claim(w.ID, 10); len(others) > 0 {
		t.Fatalf("claimed %v after a late release, which ended the lease of another claim", others)
	}
	must.OK(t, fx.Release(t.Context(), w.ID, again[:1]))
	if released := fx.claim(w.ID, 10); len(released) != 1 || released[0].ID != again[0].ID {
		t.Errorf("claimed %v after a release, want the released delivery", released)
	}
}

func (s suite) TestAttemptsAreRecordedAndRetriesWait(t *testing.T) {
	fx := s.newFixture(t)
	w := fx.webhook(ledger.EventAttestation)
	fx.NewSigner("cn=ci,ou=build,o=acme").Attest(sha(0), "test:go", ledger.Pass)
	d := fx.claim(w.ID, 10)[0]
	failed := fx.Now()
	fx.settle(w.ID, d, 500, time.Minute)
	if since := fx.getWebhook(w.ID).FailingSince; since != failed {
		t.Errorf("failing since %q, want %q", since, failed)
	}
	if early := fx.claim(w.ID, 10); len(early) != 0 {
		t.Fatalf("claimed %v before the retry is due", early)
	}
	fx.Clock.Advance(time.Minute)
	d = fx.claim(w.ID, 10)[0]
	if d.Attempts != 1 || d.Tries != 1 {
		t.Errorf("the second claim has %d attempts and %d tries, want 1 and 1", d.Attempts, d.Tries)
	}
	fx.settle(w.ID, d, 200, 0)
	if since := fx.getWebhook(w.ID).FailingSince; since != 0 {
		t.Errorf("failing since %q after a success", since)
	}
	rec, err := fx.Delivery(t.Context(), "acme", "api", w.ID, d.ID)
	must.OK(t, err)
	if rec.Status != outbound.DeliverySucceeded || rec.Attempts != 2 || rec.NextAttemptAt != 0 || rec.LastStatus != 200 ||
		rec.LastError != "" {
		t.Errorf("the delivery is %+v, want success on the second attempt", rec.Delivery)
	}
	if len(rec.History) != 2 || rec.History[0].Number != 1 || rec.History[0].Response.Status != 500 ||
		rec.History[1].Response.Status != 200 {
		t.Errorf("history %+v, want a 500 and a 200", rec.History)
	}

	// A late outcome of a concurrent attempt changes nothing.
	fx.settle(w.ID, d, 500, time.Minute)
	late := fx.deliveries(w.ID, store.DeliveryFilter{})[0]
	if late.Status != outbound.DeliverySucceeded || late.NextAttemptAt != 0 {
		t.Errorf("after a late failure it is %+v", late)
	}
}

func (s suite) TestAWebhookIsDisabled(t *testing.T) {
	t.Run("by 410", func(t *testing.T) {
		fx := s.newFixture(t)
		w := fx.webhook(ledger.EventAttestation)
		fx.NewSigner("cn=ci,ou=build,o=acme").Attest(sha(0), "test:go", ledger.Pass)
		fx.settle(w.ID, fx.claim(w.ID, 1)[0], 410, 0)
		if w = fx.getWebhook(w.ID); w.Active || w.DisabledReason != "the receiver returned 410" || w.DisabledAt != fx.Now() {
			t.Errorf("after 410 it is %+v", w)
		}
		list := storetest.EventsOf[ledger.AuditEvent](fx.Fixture)
		if e := list[len(list)-1]; e.Action != ledger.AuditWebhookChanged || e.By != (ledger.Actor{Name: "ledgerd"}) ||
			len(e.Changes) != 1 || e.Changes[0].String() != "active: true → false" {
			t.Errorf("the last audit event is %+v, want that ledgerd has disabled the webhook", e)
		}
	})
	t.Run("after five days of failure, and replay queues the missed events", func(t *testing.T) {
		fx := s.newFixture(t)
		ci, w := fx.NewSigner("cn=ci,ou=build,o=acme"), fx.webhook(ledger.EventAttestation)
		begin := fx.Now()
		ci.Attest(sha(0), "test:go", ledger.Pass)
		for day := range 6 {
			if active := fx.getWebhook(w.ID).Active; !active {
				t.Fatalf("disabled after %d days", day-1)
			}
			fx.settle(w.ID, fx.claim(w.ID, 1)[0], 500, 24*time.Hour)
			fx.Clock.Advance(24 * time.Hour)
		}

		w = fx.getWebhook(w.ID)
		if w.Active || w.DisabledReason == "" {
			t.Fatalf("after five days it is %+v", w)
		}
		if due := fx.claim(w.ID, 10); len(due) != 0 {
			t.Errorf("claimed %v of a disabled webhook", due)
		}

		ci.Attest(sha(1), "test:go", ledger.Pass) // missed
		_, err := fx.ReplayWebhook(t.Context(), "acme", "api", w.ID, begin)
		storetest.WantCode(t, err, ledger.CodeWebhookInactive)
		active := true
		w, err = fx.ChangeWebhook(t.Context(), "acme", "api", w.ID, outbound.WebhookChange{Active: &active})
		must.OK(t, err)
		if !w.Active || w.DisabledReason != "" || w.DisabledAt != 0 || w.FailingSince != 0 {
			t.Errorf("after reactivation it is %+v", w)
		}
		queued, err := fx.ReplayWebhook(t.Context(), "acme", "api", w.ID, begin)
		must.OK(t, err)
		if queued != 1 {
			t.Errorf("replay queued %d, want the missed event", queued)
		}
		if due := fx.claim(w.ID, 10); len(due) != 2 {
			t.Errorf("claimed %d, want the pending delivery and the missed event", len(due))
		}
	})
}

func (s suite) TestThePreviousSecretSignsDuringTheOverlap(t *testing.T) {
	fx := s.newFixture(t)
	w := fx.webhook(ledger.EventAttestation)
	endpoint := func() outbound.Endpoint {
		e, _, err := fx.Claim(t.Context(), w.ID, 1, time.Second)
		must.OK(t, err)
		return e
	}

	first := endpoint().Secret
	rotated, err := fx.RotateWebhook(t.Context(), "acme", "api", w.ID, "whsec_new", time.Hour)
	must.OK(t, err)
	if want := fx.Now().Add(time.Hour); rotated.PreviousSecretUntil != want {
		t.Errorf("the previous secret signs until %s, want %s", rotated.PreviousSecretUntil, want)
	}
	if e := endpoint(); e.Secret != "whsec_new" || e.PreviousSecret != first ||
		e.PreviousUntil != rotated.PreviousSecretUntil {
		t.Errorf("after the rotation: %+v", e)
	}

	fx.Clock.Advance(time.Hour)
	if until := fx.getWebhook(w.ID).PreviousSecretUntil; until != 0 {
		t.Errorf("after the overlap the previous secret signs until %s", until)
	}
	_, err = fx.RotateWebhook(t.Context(), "acme", "api", w.ID, "whsec_newer", 0)
	must.OK(t, err)
	if e := endpoint(); e.Secret != "whsec_newer" || e.PreviousSecret != "" {
		t.Errorf("after a rotation without overlap: %+v", e)
	}
}

// The header is sent, and not shown. It is only for the receiver for which it was given.
func (s suite) TestAuthorization(t *testing.T) {
	fx := s.newFixture(t)
	w, err := fx.CreateWebhook(t.Context(), "acme", "api", outbound.NewWebhook{
		URL: "https://ci.example.com/ledger", Events: ledger.DefaultEventTypes(), Authorization: "Bearer first",
	}, "whsec_secret")
	must.OK(t, err)
	change := func(c outbound.WebhookChange) error {
		var err error
		w, err = fx.ChangeWebhook(t.Context(), "acme", "api", w.ID, c)
		return err
	}
	want := func(header, shown string) {
		t.Helper()
		e, _, err := fx.Claim(t.Context(), w.ID, 1, time.Second)
		must.OK(t, err)
		if e.Authorization != header || fx.getWebhook(w.ID).Authorization != shown || w.Authorization != shown {
			t.Errorf("sends %q and shows %q, want %q and %q", e.Authorization, w.Authorization, header, shown)
		}
	}
	want("Bearer first", outbound.MaskedAuthorization)

	must.OK(t, change(outbound.WebhookChange{Authorization: new("Bearer second")}))
	must.OK(t, change(outbound.WebhookChange{URL: new("https://ci.example.com/other"), Description: new("other path")}))
	must.Get(fx.RotateWebhook(t.Context(), "acme", "api", w.ID, "whsec_new", time.Hour))(t)
	want("Bearer second", outbound.MaskedAuthorization)

	for _, elsewhere := range []string{
		"https://evil.example/ledger", "http://ci.example.com/", "https://ci.example.com:444",
	} {
		before := w
		err := change(outbound.WebhookChange{URL: &elsewhere})
		storetest.WantCode(t, err, ledger.CodeInvalidField)
		w = before
	}
	want("Bearer second", outbound.MaskedAuthorization)
	must.OK(t, change(outbound.WebhookChange{URL: new("https://new.example/"), Authorization: new("Bearer third")}))
	want("Bearer third", outbound.MaskedAuthorization)
	must.OK(t, change(outbound.WebhookChange{Authorization: new("")}))
	must.OK(t, change(outbound.WebhookChange{URL: new("https://newer.example/")}))
	want("", "")
}

func (s suite) TestPruning(t *testing.T) {
	fx := s.newFixture(t)
	ci, w, deleted := fx.NewSigner("cn=ci,ou=build,o=acme"), fx.webhook(ledger.EventAttestation),
		fx.webhook(ledger.EventAttestation)
	for i := range 2 {
		ci.Attest(sha(i), "test:go", ledger.Pass)
	}
	ended := fx.claim(w.ID, 1)[0]
	fx.settle(w.ID, ended, 200, 0)
	fx.Clock.Advance(31 * 24 * time.Hour)
	ci.Attest(sha(2), "test:go", ledger.Pass)
	must.OK(t, fx.DeleteWebhook(t.Context(), "acme", "api", deleted.ID))
	must.OK(t, fx.Prune(t.Context()))

	list := fx.deliveries(w.ID, store.DeliveryFilter{})
	if len(list) != 2 || slices.ContainsFunc(list, func(d outbound.Delivery) bool { return d.ID == ended.ID }) {
		t.Errorf("after Prune: %+v, want the pending delivery and the new one", list)
	}
	_, err := fx.Webhook(t.Context(), "acme", "api", deleted.ID)
	storetest.WantCode(t, err, ledger.CodeNotFound)
	if due := fx.claim(deleted.ID, 10); len(due) != 0 {
		t.Errorf("claimed %v of a deleted webhook", due)
	}
}

// Prune goes by the time when a delivery ended, not when it was created.
func (s suite) TestPruneKeepsDeliveriesThatEndedRecently(t *testing.T) {
	fx := s.newFixture(t)
	ci, w := fx.NewSigner("cn=ci,ou=build,o=acme"), fx.webhook(ledger.EventAttestation)
	begin := fx.Now()
	ci.Attest(sha(0), "test:go", ledger.Pass)
	ci.Attest(sha(1), "test:go", ledger.Pass)
	again := fx.claim(w.ID, 1)[0]
	fx.settle(w.ID, again, 200, 0)
	fx.Clock.Advance(29 * 24 * time.Hour)
	fx.redeliver(w.ID, again.ID)
	fx.Clock.Advance(2 * 24 * time.Hour)
	must.OK(t, fx.Prune(t.Context())) // both are pending, one since its redelivery
	for _, d := range fx.claim(w.ID, 2) {
		fx.settle(w.ID, d, 200, 0)
	}

	for _, test := range []struct {
		name string
		wait time.Duration
		want int
	}{{"just ended", 0, 2}, {"30 days later", 30 * 24 * time.Hour, 2}, {"a millisecond later", time.Millisecond, 0}} {
		fx.Clock.Advance(test.wait)
		must.OK(t, fx.Prune(t.Context()))
		if list := fx.deliveries(w.ID, store.DeliveryFilter{}); len(list) != test.want {
			t.Errorf("%s: %d deliveries, want %d", test.name, len(list), test.want)
		}
		if queued := fx.replay(w.ID, begin); test.want > 0 && queued != 0 {
			t.Errorf("%s: replay queued %d again", test.name, queued)
		}
	}
}

func (s suite) TestTheWebhooksOfARepoAreLimited(t *testing.T) {
	fx := s.newFixture(t)
	_, err := fx.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: "web"}, "host")
	must.OK(t, err)
	create := func(repo string) error {
		_, err := fx.CreateWebhook(
			t.Context(), "acme", repo, outbound.NewWebhook{URL: "https://x.example", Events: ledger.EventTypes()}, "whsec_x")
		return err
	}
	for range 49 {
		fx.webhook()
	}
	last := fx.webhook()
	storetest.WantCode(t, create("api"), ledger.CodeLimitReached)
	must.OK(t, create("web"))
	must.OK(t, fx.DeleteWebhook(t.Context(), "acme", "api", last.ID))
	must.OK(t, create("api"))
}
