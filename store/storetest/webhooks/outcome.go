package webhooks

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/store"
)

// The outcome of an attempt at a previous URL, or from before the webhook was
// reactivated, is recorded, but does not change the state of the webhook.
func (s suite) TestALateOutcomeDoesNotAffectAChangedWebhook(t *testing.T) {
	elsewhere := outbound.WebhookChange{URL: new("https://other.example")}
	tests := []struct {
		name   string
		change []outbound.WebhookChange
		status int
		want   outbound.DeliveryStatus
	}{
		// Pending, since the new URL has not refused it.
		{"410 of the old URL", []outbound.WebhookChange{elsewhere}, 410, outbound.DeliveryPending},
		{"failure of the old URL", []outbound.WebhookChange{elsewhere}, 500, outbound.DeliveryFailed},
		{"success of the old URL", []outbound.WebhookChange{elsewhere}, 200, outbound.DeliverySucceeded},
		{"410 before it was deactivated", []outbound.WebhookChange{{Active: new(false)}, {Active: new(true)}}, 410,
			outbound.DeliveryFailed},
		{"failure before it was deactivated", []outbound.WebhookChange{{Active: new(false)}, {Active: new(true)}}, 500,
			outbound.DeliveryFailed},
		{"410 before the URL changed and changed back", []outbound.WebhookChange{elsewhere, {URL: new(hookURL)}}, 410,
			outbound.DeliveryFailed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fx := s.newFixture(t)
			w := fx.webhook(ledger.EventAttestation)
			fx.NewSigner("cn=ci,ou=build,o=acme").Attest(sha(0), "test:go", ledger.Pass)
			late := fx.outcome(w.ID, fx.claim(w.ID, 1)[0], test.status, 0)
			for _, c := range test.change {
				fx.Clock.Advance(time.Second)
				fx.change(w.ID, c)
			}
			fx.record(late)
			if w := fx.getWebhook(w.ID); !w.Active || w.FailingSince != 0 {
				t.Errorf("the webhook is %+v, want active and not failing", w)
			}
			if d := fx.delivery(w.ID, late.Delivery); d.Status != test.want || len(d.History) != 1 {
				t.Errorf("the delivery is %+v, want %s after one attempt", d, test.want)
			}
		})
	}

	t.Run("success of the old URL while the new URL fails", func(t *testing.T) {
		fx := s.newFixture(t)
		ci, w := fx.NewSigner("cn=ci,ou=build,o=acme"), fx.webhook(ledger.EventAttestation)
		ci.Attest(sha(0), "test:go", ledger.Pass)
		ci.Attest(sha(1), "test:go", ledger.Pass)
		due := fx.claim(w.ID, 2)
		late, failed := fx.outcome(w.ID, due[0], 200, 0), fx.outcome(w.ID, due[1], 500, time.Minute)
		fx.change(w.ID, elsewhere)
		failed.Attempt.Request.URL = *elsewhere.URL
		fx.record(failed)
		fx.record(late)
		if since := fx.getWebhook(w.ID).FailingSince; since != failed.Attempt.At {
			t.Errorf("failing since %q, want %q", since, failed.Attempt.At)
		}
	})
}

func (s suite) TestAClockSetForwardDoesNotDisable(t *testing.T) {
	fx := s.newFixture(t)
	w := fx.webhook(ledger.EventAttestation)
	fx.NewSigner("cn=ci,ou=build,o=acme").Attest(sha(0), "test:go", ledger.Pass)
	fail := func(n int) {
		for range n {
			fx.settle(w.ID, fx.claim(w.ID, 1)[0], 500, time.Second)
			fx.Clock.Advance(time.Second)
		}
	}
	fail(1)
	fx.Clock.Advance(365 * 24 * time.Hour)
	fail(3)
	if w := fx.getWebhook(w.ID); !w.Active {
		t.Fatalf("after four failures in a row it is %+v", w)
	}
	fail(1)
	if w := fx.getWebhook(w.ID); w.Active {
		t.Errorf("after five failures in a row it is %+v", w)
	}
}

func (s suite) TestALateOutcomeDoesNotEndALease(t *testing.T) {
	for _, test := range []struct {
		name  string
		retry time.Duration
	}{{"with a retry", time.Hour}, {"without a retry", 0}} {
		t.Run(test.name, func(t *testing.T) {
			fx := s.newFixture(t)
			w := fx.webhook(ledger.EventAttestation)
			fx.NewSigner("cn=ci,ou=build,o=acme").Attest(sha(0), "test:go", ledger.Pass)
			first := fx.claim(w.ID, 1)[0]
			fx.Clock.Advance(30 * time.Second)
			second := fx.claim(w.ID, 1)[0] // the first lease has expired
			fx.settle(w.ID, first, 500, test.retry)
			if again := fx.claim(w.ID, 1); len(again) != 0 {
				t.Errorf("claimed %+v during the second lease", again)
			}

			fx.Clock.Advance(30 * time.Second)
			third := fx.claim(w.ID, 1)
			if len(third) != 1 || third[0].Attempts != 1 || third[0].Tries != 0 {
				t.Fatalf("claimed %+v after the second lease, want the delivery again", third)
			}

			fx.settle(w.ID, second, 200, 0) // also late, but a success
			d := fx.delivery(w.ID, first.ID)
			if d.Status != outbound.DeliverySucceeded || len(d.History) != 2 {
				t.Errorf("the delivery is %+v, want success on the second attempt", d)
			}
			fx.settle(w.ID, third[0], 500, time.Hour)
			if d := fx.delivery(w.ID, first.ID); d.Status != outbound.DeliverySucceeded || len(d.History) != 3 {
				t.Errorf("after a failed third attempt the delivery is %+v, want success", d)
			}
		})
	}
}

func (s suite) TestRedeliverDuringTheLastAttemptStartsOver(t *testing.T) {
	for _, test := range []struct {
		name   string
		status int
		retry  time.Duration
		want   outbound.DeliveryStatus
	}{
		{"the attempt fails", 500, 0, outbound.DeliveryPending},
		{"the attempt fails, with a retry tomorrow", 500, 24 * time.Hour, outbound.DeliveryPending},
		{"the attempt succeeds", 200, 0, outbound.DeliverySucceeded},
	} {
		t.Run(test.name, func(t *testing.T) {
			fx := s.newFixture(t)
			w := fx.webhook(ledger.EventAttestation)
			fx.NewSigner("cn=ci,ou=build,o=acme").Attest(sha(0), "test:go", ledger.Pass)
			fx.settle(w.ID, fx.claim(w.ID, 1)[0], 500, time.Second)
			fx.Clock.Advance(time.Second)
			last := fx.claim(w.ID, 1)[0]
			if d := fx.redeliver(w.ID, last.ID); d.Status != outbound.DeliveryPending || d.NextAttemptAt != 0 {
				t.Errorf("after redelivery it is %+v, want pending and leased", d)
			}

			fx.settle(w.ID, last, test.status, test.retry)
			if d := fx.delivery(w.ID, last.ID); d.Status != test.want || d.Attempts != 2 {
				t.Errorf("it is %+v, want %s after two attempts", d.Delivery, test.want)
			}
			again := fx.claim(w.ID, 1)
			if test.want == outbound.DeliverySucceeded {
				if len(again) != 0 {
					t.Errorf("claimed %+v after a success", again)
				}
			} else if len(again) != 1 || again[0].Tries != 0 {
				t.Errorf("claimed %+v, want the delivery at once, with no tries", again)
			}
		})
	}
}

func (s suite) TestPingsAndRedeliveriesGoFirst(t *testing.T) {
	fx := s.newFixture(t)
	ci, w := fx.NewSigner("cn=ci,ou=build,o=acme"), fx.webhook(ledger.EventAttestation)
	for i := range 6 {
		ci.Attest(sha(i), "test:go", ledger.Pass)
	}
	failed := fx.claim(w.ID, 1)[0]
	fx.settle(w.ID, failed, 500, 0)
	fx.Clock.Advance(time.Hour)

	ping, err := fx.PingWebhook(t.Context(), "acme", "api", w.ID)
	must.OK(t, err)
	again := fx.redeliver(w.ID, failed.ID)
	for _, d := range []outbound.Delivery{ping, again, fx.delivery(w.ID, ping.ID).Delivery,
		fx.delivery(w.ID, again.ID).Delivery} {
		if d.NextAttemptAt != fx.Now() {
			t.Errorf("%s: next attempt at %s, want now", d.ID, d.NextAttemptAt)
		}
	}

	due := fx.claim(w.ID, 2)
	if len(due) != 2 || due[0].ID != ping.ID || due[1].ID != failed.ID {
		t.Fatalf("claimed %+v first, want the ping and the redelivery", due)
	}
	must.OK(t, fx.Release(t.Context(), w.ID, due[:1]))
	if first := fx.claim(w.ID, 1); len(first) != 1 || first[0].ID != ping.ID {
		t.Errorf("claimed %+v, want the released ping", first)
	}
}

func (s suite) TestTheTimeOfTheNextAttempt(t *testing.T) {
	fx := s.newFixture(t)
	w := fx.webhook(ledger.EventAttestation)
	fx.NewSigner("cn=ci,ou=build,o=acme").Attest(sha(0), "test:go", ledger.Pass)
	begin := fx.Now()

	var d outbound.DueDelivery
	for _, test := range []struct {
		name string
		do   func()
		want ledger.Time
	}{
		{"pending", func() {}, begin},
		{"leased", func() { d = fx.claim(w.ID, 1)[0] }, 0},
		{"failed once", func() { fx.settle(w.ID, d, 500, time.Hour) }, begin.Add(time.Hour)},
		{"inactive", func() { fx.change(w.ID, outbound.WebhookChange{Active: new(false)}) }, 0},
		{"active again", func() { fx.change(w.ID, outbound.WebhookChange{Active: new(true)}) }, begin.Add(time.Hour)},
		{"redelivered", func() { d.ID = fx.redeliver(w.ID, fx.deliveries(w.ID, store.DeliveryFilter{})[0].ID).ID }, begin},
		{"delivered", func() { fx.settle(w.ID, fx.claim(w.ID, 1)[0], 200, 0) }, 0},
	} {
		test.do()
		if got := fx.deliveries(w.ID, store.DeliveryFilter{})[0].NextAttemptAt; got != test.want {
			t.Errorf("%s: next attempt at %q, want %q", test.name, got, test.want)
		}
	}
}

// The reason may have a secret, for instance in a receiver's redirect.
func (s suite) TestTheReasonForDisablingIsNotLogged(t *testing.T) {
	var log bytes.Buffer
	fx := s.newFixture(t)
	w := fx.webhook()
	must.OK(t, fx.Close())
	fx.Open(store.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	must.OK(t, fx.RecordOutcomes(t.Context(), []outbound.Outcome{{
		Webhook: w.ID, Delivery: "dlv_none", Status: outbound.DeliveryFailed,
		Disable: "redirect to https://x.example/?token=hunter2",
		Attempt: outbound.Attempt{At: fx.Now(), Error: "410", Request: outbound.AttemptRequest{URL: hookURL}},
	}}, 0))
	if text := log.String(); !strings.Contains(text, w.ID) || strings.Contains(text, "hunter2") {
		t.Errorf("the log is %q, want only the id", text)
	}
}

// The outcome of a webhook that was deleted since does not keep others from being recorded.
func (s suite) TestOutcomesAfterThatOfADeletedWebhook(t *testing.T) {
	fx := s.newFixture(t)
	deleted, w := fx.webhook(ledger.EventAttestation), fx.webhook(ledger.EventAttestation)
	fx.NewSigner("cn=ci,ou=build,o=acme").Attest(sha(0), "test:go", ledger.Pass)
	lost, d := fx.claim(deleted.ID, 1)[0], fx.claim(w.ID, 1)[0]
	must.OK(t, fx.DeleteWebhook(t.Context(), "acme", "api", deleted.ID))

	must.OK(t, fx.RecordOutcomes(t.Context(),
		[]outbound.Outcome{fx.outcome(deleted.ID, lost, 200, 0), fx.outcome(w.ID, d, 200, 0)}, 0))
	if got := fx.delivery(w.ID, d.ID).Status; got != outbound.DeliverySucceeded {
		t.Errorf("the delivery is %s, want succeeded", got)
	}
}
