package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
)

func (s suite) TestReplayQueuesWhatIsNeitherAcknowledgedNorWaiting(t *testing.T) {
	b := s.newBench(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	ci.attests(sha(0), "test:go", ledger.Pass) // before there is a webhook
	b.clock.advance(time.Hour)
	since := b.Now()
	ci.attests(sha(1), "test:go", ledger.Pass) // likewise, but asked for
	w := b.webhook(ledger.EventAttestation)
	for i := range 3 {
		ci.attests(sha(2+i), "test:go", ledger.Pass)
	}
	due := b.claim(w.ID, 10)
	b.settle(w.ID, due[0], 200, 0)         // acknowledged
	b.settle(w.ID, due[1], 500, 0)         // failed for good
	b.settle(w.ID, due[2], 500, time.Hour) // waits
	for _, want := range []int64{2, 0} {
		queued, err := b.ReplayWebhook(t.Context(), "acme", "api", w.ID, since)
		check(t, err)
		if queued != want {
			t.Errorf("replay queued %d, want %d", queued, want)
		}
	}
	got := b.claim(w.ID, 10)
	if len(got) != 2 || got[0].ID != due[1].ID || got[0].Tries != 0 {
		t.Errorf("claimed %+v, want the failed one afresh and the one never sent", got)
	}
}

func (s suite) TestRedeliverSendsTheSameEventAgain(t *testing.T) {
	b := s.newBench(t)
	w := b.webhook(ledger.EventAttestation)
	b.signer("cn=ci,ou=build,o=acme").attests(sha(0), "test:go", ledger.Pass)
	first := b.claim(w.ID, 1)[0]
	_, err := b.Redeliver(t.Context(), "acme", "api", w.ID, first.ID)
	check(t, err)
	if got := b.claim(w.ID, 1); len(got) != 0 {
		t.Errorf("a redelivery hit a delivery that was under way: %+v", got)
	}
	b.settle(w.ID, first, 200, 0)
	again, err := b.Redeliver(t.Context(), "acme", "api", w.ID, first.ID)
	check(t, err)
	if again.Status != ledger.DeliveryPending || again.Attempts != 1 {
		t.Errorf("redelivered it is %+v", again)
	}
	second := b.claim(w.ID, 1)
	if len(second) != 1 || second[0].ID != first.ID || second[0].Event != first.Event ||
		string(second[0].Body) != string(first.Body) {
		t.Errorf("redelivered %+v, want %+v", second, first)
	}
	_, err = b.Redeliver(t.Context(), "acme", "api", w.ID, "dlv_none")
	wantCode(t, err, ledger.CodeNotFound)
}

func (s suite) TestAPingIsADeliveryButNoEvent(t *testing.T) {
	b := s.newBench(t)
	w := b.webhook()
	ping, err := b.PingWebhook(t.Context(), "acme", "api", w.ID)
	check(t, err)
	due := b.claim(w.ID, 10)
	if len(due) != 1 || due[0].Type != ledger.EventPing || due[0].ID != ping.ID || due[0].Event != ping.Event {
		t.Fatalf("claimed %+v, want the ping %+v", due, ping)
	}
	b.settle(w.ID, due[0], 200, 0)
	rec, err := b.Delivery(t.Context(), "acme", "api", w.ID, ping.ID)
	check(t, err)
	if string(rec.Body) != string(due[0].Body) {
		t.Errorf("the record has the body %s, sent was %s", rec.Body, due[0].Body)
	}
	events, err := b.Events(t.Context(), "acme", store.EventFilter{Query: store.Query{Limit: 10}})
	check(t, err)
	if len(events.Data) != 0 {
		t.Errorf("the log holds %s", events.Data)
	}
}

func (s suite) TestDeliveriesAreListedNewestFirst(t *testing.T) {
	b := s.newBench(t)
	ci, w := b.signer("cn=ci,ou=build,o=acme"), b.webhook(ledger.EventAttestation)
	for i := range 7 {
		b.clock.advance(time.Second)
		ci.attests(sha(i), "test:go", ledger.Pass)
	}
	due := b.claim(w.ID, 6)
	for i, d := range due {
		b.settle(w.ID, d, []int{200, 500}[i%2], 0)
	}
	b.clock.advance(time.Second)
	_, err := b.PingWebhook(t.Context(), "acme", "api", w.ID)
	check(t, err)
	ping, err := b.PingWebhook(t.Context(), "acme", "api", w.ID)
	check(t, err)
	tests := []struct {
		name   string
		filter store.DeliveryFilter
		want   int
	}{
		{"all", store.DeliveryFilter{}, 9},
		{"pending", store.DeliveryFilter{Status: ledger.DeliveryPending}, 3},
		{"succeeded", store.DeliveryFilter{Status: ledger.DeliverySucceeded}, 3},
		{"failed", store.DeliveryFilter{Status: ledger.DeliveryFailed}, 3},
		{"of an event", store.DeliveryFilter{Event: due[2].Event}, 1},
		{"of an event, pending", store.DeliveryFilter{Event: due[2].Event, Status: ledger.DeliveryPending}, 0},
		{"of an event, succeeded", store.DeliveryFilter{Event: due[2].Event, Status: ledger.DeliverySucceeded}, 1},
		{"of a ping", store.DeliveryFilter{Event: ping.Event}, 1},
		{"of a ping, failed", store.DeliveryFilter{Event: ping.Event, Status: ledger.DeliveryFailed}, 0},
		{"of an unknown event", store.DeliveryFilter{Event: "evt_none"}, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := b.deliveries(w.ID, test.filter)
			newestFirst := slices.IsSortedFunc(got, func(a, b ledger.Delivery) int { return int(b.CreatedAt - a.CreatedAt) })
			if len(got) != test.want || !newestFirst {
				t.Errorf("%d deliveries, newest first: %v; want %d", len(got), newestFirst, test.want)
			}
		})
	}
}

func (s suite) TestAReplayBeginsAtAMoment(t *testing.T) {
	b := s.newBench(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	var at [10]ledger.Time
	for i := range at {
		at[i] = ci.attests(sha(i), "test:go", ledger.Pass).RecordedAt // and two events of state
		b.clock.advance(time.Minute)
	}
	for _, test := range []struct {
		since ledger.Time
		want  int64
	}{
		{1, 10}, {at[0], 10}, {at[0] + 1, 9}, {at[5], 5}, {at[5] - 1, 5}, {at[9], 1}, {at[9] + 1, 0}, {b.Now(), 0},
	} {
		if queued := b.replay(b.webhook(ledger.EventAttestation).ID, test.since); queued != test.want {
			t.Errorf("since %s it queued %d, want %d", test.since, queued, test.want)
		}
	}
}
