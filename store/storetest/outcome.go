package storetest

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
)

// What came of a try of another URL, or of one from before the webhook was
// made active again, is recorded, but says nothing about the webhook as it is.
func (s suite) TestALateOutcomeSaysNothingOfAChangedWebhook(t *testing.T) {
	elsewhere := ledger.WebhookChange{URL: new("https://other.example")}
	tests := []struct {
		name   string
		change []ledger.WebhookChange
		status int
		want   ledger.DeliveryStatus
	}{
		// the new one has not refused it
		{"410 of the old URL", []ledger.WebhookChange{elsewhere}, 410, ledger.DeliveryPending},
		{"failure of the old URL", []ledger.WebhookChange{elsewhere}, 500, ledger.DeliveryFailed},
		{"success of the old URL", []ledger.WebhookChange{elsewhere}, 200, ledger.DeliverySucceeded},
		{"410 of before it was paused", []ledger.WebhookChange{{Active: new(false)}, {Active: new(true)}}, 410,
			ledger.DeliveryFailed},
		{"failure of before it was paused", []ledger.WebhookChange{{Active: new(false)}, {Active: new(true)}}, 500,
			ledger.DeliveryFailed},
		{"410 of before it was elsewhere", []ledger.WebhookChange{elsewhere, {URL: new(hookURL)}}, 410,
			ledger.DeliveryFailed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := s.newBench(t)
			w := b.webhook(ledger.EventAttestation)
			b.signer("cn=ci,ou=build,o=acme").attests(sha(0), "test:go", ledger.Pass)
			late := b.outcome(w.ID, b.claim(w.ID, 1)[0], test.status, 0)
			for _, c := range test.change {
				b.clock.advance(time.Second)
				b.change(w.ID, c)
			}
			b.record(late)
			if w := b.getWebhook(w.ID); !w.Active || w.FailingSince != 0 {
				t.Errorf("the webhook is %+v, want it active and not failing", w)
			}
			if d := b.delivery(w.ID, late.Delivery); d.Status != test.want || len(d.History) != 1 {
				t.Errorf("the delivery is %+v, want it %s after one attempt", d, test.want)
			}
		})
	}

	t.Run("success of the old URL does not end the new one's failing", func(t *testing.T) {
		b := s.newBench(t)
		ci, w := b.signer("cn=ci,ou=build,o=acme"), b.webhook(ledger.EventAttestation)
		ci.attests(sha(0), "test:go", ledger.Pass)
		ci.attests(sha(1), "test:go", ledger.Pass)
		due := b.claim(w.ID, 2)
		late, failed := b.outcome(w.ID, due[0], 200, 0), b.outcome(w.ID, due[1], 500, time.Minute)
		b.change(w.ID, elsewhere)
		failed.Attempt.Request.URL = *elsewhere.URL
		b.record(failed)
		b.record(late)
		if since := b.getWebhook(w.ID).FailingSince; since != failed.Attempt.At {
			t.Errorf("failing since %q, want %q", since, failed.Attempt.At)
		}
	})
}

func (s suite) TestAClockSetForwardDoesNotDisable(t *testing.T) {
	b := s.newBench(t)
	w := b.webhook(ledger.EventAttestation)
	b.signer("cn=ci,ou=build,o=acme").attests(sha(0), "test:go", ledger.Pass)
	fail := func(n int) {
		for range n {
			b.settle(w.ID, b.claim(w.ID, 1)[0], 500, time.Second)
			b.clock.advance(time.Second)
		}
	}
	fail(1)
	b.clock.advance(365 * 24 * time.Hour)
	fail(3)
	if w := b.getWebhook(w.ID); !w.Active {
		t.Fatalf("after four failures in a row it is %+v", w)
	}
	fail(1)
	if w := b.getWebhook(w.ID); w.Active {
		t.Errorf("after five failures in a row it is %+v", w)
	}
}

func (s suite) TestALateOutcomeLeavesTheLeaseToItsHolder(t *testing.T) {
	for _, test := range []struct {
		name  string
		retry time.Duration
	}{{"a retry", time.Hour}, {"the last try", 0}} {
		t.Run(test.name, func(t *testing.T) {
			b := s.newBench(t)
			w := b.webhook(ledger.EventAttestation)
			b.signer("cn=ci,ou=build,o=acme").attests(sha(0), "test:go", ledger.Pass)
			first := b.claim(w.ID, 1)[0]
			b.clock.advance(30 * time.Second)
			second := b.claim(w.ID, 1)[0] // the first holder was too slow
			b.settle(w.ID, first, 500, test.retry)
			if again := b.claim(w.ID, 1); len(again) != 0 {
				t.Errorf("claimed %+v, which the second holder tries", again)
			}
			b.clock.advance(30 * time.Second)
			third := b.claim(w.ID, 1)
			if len(third) != 1 || third[0].Attempts != 1 || third[0].Tries != 0 {
				t.Fatalf("claimed %+v when the second lease was over, want it again", third)
			}
			b.settle(w.ID, second, 200, 0) // late too, but a success
			d := b.delivery(w.ID, first.ID)
			if d.Status != ledger.DeliverySucceeded || len(d.History) != 2 {
				t.Errorf("it is %+v, want it to have succeeded at the second attempt", d)
			}
			b.settle(w.ID, third[0], 500, time.Hour)
			if d := b.delivery(w.ID, first.ID); d.Status != ledger.DeliverySucceeded || len(d.History) != 3 {
				t.Errorf("after a third attempt that failed it is %+v, want it to have succeeded", d)
			}
		})
	}
}

func (s suite) TestRedeliverDuringTheLastTryBeginsAnew(t *testing.T) {
	for _, test := range []struct {
		name   string
		status int
		retry  time.Duration
		want   ledger.DeliveryStatus
	}{
		{"which fails", 500, 0, ledger.DeliveryPending},
		{"which fails and would be tried again tomorrow", 500, 24 * time.Hour, ledger.DeliveryPending},
		{"which succeeds", 200, 0, ledger.DeliverySucceeded},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := s.newBench(t)
			w := b.webhook(ledger.EventAttestation)
			b.signer("cn=ci,ou=build,o=acme").attests(sha(0), "test:go", ledger.Pass)
			b.settle(w.ID, b.claim(w.ID, 1)[0], 500, time.Second)
			b.clock.advance(time.Second)
			last := b.claim(w.ID, 1)[0]
			if d := b.redeliver(w.ID, last.ID); d.Status != ledger.DeliveryPending || d.NextAttemptAt != 0 {
				t.Errorf("redelivered it is %+v, want it pending and under way", d)
			}
			b.settle(w.ID, last, test.status, test.retry)
			if d := b.delivery(w.ID, last.ID); d.Status != test.want || d.Attempts != 2 {
				t.Errorf("it is %+v, want it %s after two attempts", d.Delivery, test.want)
			}
			again := b.claim(w.ID, 1)
			if test.want == ledger.DeliverySucceeded {
				if len(again) != 0 {
					t.Errorf("claimed %+v after a success", again)
				}
			} else if len(again) != 1 || again[0].Tries != 0 {
				t.Errorf("claimed %+v, want it at once and with all its tries", again)
			}
		})
	}
}

func (s suite) TestWhatIsAskedForGoesFirst(t *testing.T) {
	b := s.newBench(t)
	ci, w := b.signer("cn=ci,ou=build,o=acme"), b.webhook(ledger.EventAttestation)
	for i := range 6 {
		ci.attests(sha(i), "test:go", ledger.Pass)
	}
	failed := b.claim(w.ID, 1)[0]
	b.settle(w.ID, failed, 500, 0)
	b.clock.advance(time.Hour)
	ping, err := b.PingWebhook(t.Context(), "acme", "api", w.ID)
	check(t, err)
	again := b.redeliver(w.ID, failed.ID)
	for _, d := range []ledger.Delivery{ping, again, b.delivery(w.ID, ping.ID).Delivery,
		b.delivery(w.ID, again.ID).Delivery} {
		if d.NextAttemptAt != b.Now() {
			t.Errorf("%s is tried next at %s, want now", d.ID, d.NextAttemptAt)
		}
	}
	due := b.claim(w.ID, 2)
	if len(due) != 2 || due[0].ID != ping.ID || due[1].ID != failed.ID {
		t.Fatalf("claimed %+v before the backlog, want the ping and what was redelivered", due)
	}
	check(t, b.Release(t.Context(), w.ID, []string{due[0].ID}))
	if first := b.claim(w.ID, 1); len(first) != 1 || first[0].ID != ping.ID {
		t.Errorf("claimed %+v, want the ping that was given back", first)
	}
}

func (s suite) TestTheNextAttemptIsToldWhileItIsKnown(t *testing.T) {
	b := s.newBench(t)
	w := b.webhook(ledger.EventAttestation)
	b.signer("cn=ci,ou=build,o=acme").attests(sha(0), "test:go", ledger.Pass)
	begin := b.Now()
	var d ledger.DueDelivery
	for _, test := range []struct {
		name string
		do   func()
		want ledger.Time
	}{
		{"waiting", func() {}, begin},
		{"under way", func() { d = b.claim(w.ID, 1)[0] }, 0},
		{"failed once", func() { b.settle(w.ID, d, 500, time.Hour) }, begin.Add(time.Hour)},
		{"paused", func() { b.change(w.ID, ledger.WebhookChange{Active: new(false)}) }, 0},
		{"active again", func() { b.change(w.ID, ledger.WebhookChange{Active: new(true)}) }, begin.Add(time.Hour)},
		{"redelivered", func() { d.ID = b.redeliver(w.ID, b.deliveries(w.ID, store.DeliveryFilter{})[0].ID).ID }, begin},
		{"delivered", func() { b.settle(w.ID, b.claim(w.ID, 1)[0], 200, 0) }, 0},
	} {
		test.do()
		if got := b.deliveries(w.ID, store.DeliveryFilter{})[0].NextAttemptAt; got != test.want {
			t.Errorf("%s: next attempt at %q, want %q", test.name, got, test.want)
		}
	}
}

// A receiver's redirect, for instance, may hold a secret.
func (s suite) TestTheLogDoesNotTellWhyAWebhookIsDisabled(t *testing.T) {
	var log bytes.Buffer
	b := s.newBench(t)
	w := b.webhook()
	check(t, b.Close())
	b.open(store.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	check(t, b.RecordOutcomes(t.Context(), []ledger.Outcome{{
		Webhook: w.ID, Delivery: "dlv_none", Status: ledger.DeliveryFailed,
		Disable: "it leads to https://x.example/?token=hunter2",
		Attempt: ledger.Attempt{At: b.Now(), Error: "410", Request: ledger.AttemptRequest{URL: hookURL}},
	}}, 0))
	if text := log.String(); !strings.Contains(text, w.ID) || strings.Contains(text, "hunter2") {
		t.Errorf("the log is %q, want the id alone", text)
	}
}
