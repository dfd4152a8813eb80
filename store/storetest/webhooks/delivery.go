package webhooks

import (
	"slices"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

func (s suite) TestReplayQueuesFailedAndMissedEvents(t *testing.T) {
	fx := s.newFixture(t)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	ci.Attest(sha(0), "test:go", ledger.Pass) // before the webhook, and before since
	fx.Clock.Advance(time.Hour)
	since := fx.Now()
	ci.Attest(sha(1), "test:go", ledger.Pass) // before the webhook, but after since
	w := fx.webhook(ledger.EventAttestation)
	for i := range 3 {
		ci.Attest(sha(2+i), "test:go", ledger.Pass)
	}
	due := fx.claim(w.ID, 10)
	fx.settle(w.ID, due[0], 200, 0)         // succeeded
	fx.settle(w.ID, due[1], 500, 0)         // failed
	fx.settle(w.ID, due[2], 500, time.Hour) // pending

	for _, want := range []int64{2, 0} {
		queued, err := fx.ReplayWebhook(t.Context(), "acme", "api", w.ID, since)
		must.OK(t, err)
		if queued != want {
			t.Errorf("replay queued %d, want %d", queued, want)
		}
	}
	got := fx.claim(w.ID, 10)
	if len(got) != 2 || got[0].ID != due[1].ID || got[0].Tries != 0 {
		t.Errorf("claimed %+v, want the failed event with no tries and the missed one", got)
	}
}

func (s suite) TestRedeliverSendsTheSameEventAgain(t *testing.T) {
	fx := s.newFixture(t)
	w := fx.webhook(ledger.EventAttestation)
	fx.NewSigner("cn=ci,ou=build,o=acme").Attest(sha(0), "test:go", ledger.Pass)
	first := fx.claim(w.ID, 1)[0]
	_, err := fx.Redeliver(t.Context(), "acme", "api", w.ID, first.ID)
	must.OK(t, err)
	if got := fx.claim(w.ID, 1); len(got) != 0 {
		t.Errorf("claimed a leased delivery after a redelivery: %+v", got)
	}

	fx.settle(w.ID, first, 200, 0)
	again, err := fx.Redeliver(t.Context(), "acme", "api", w.ID, first.ID)
	must.OK(t, err)
	if again.Status != outbound.DeliveryPending || again.Attempts != 1 {
		t.Errorf("after redelivery it is %+v", again)
	}
	second := fx.claim(w.ID, 1)
	if len(second) != 1 || second[0].ID != first.ID || second[0].Event != first.Event ||
		string(second[0].Body) != string(first.Body) {
		t.Errorf("redelivered %+v, want %+v", second, first)
	}
	_, err = fx.Redeliver(t.Context(), "acme", "api", w.ID, "dlv_none")
	storetest.WantCode(t, err, ledger.CodeNotFound)
}

func (s suite) TestAPingIsADeliveryWithoutAnEvent(t *testing.T) {
	fx := s.newFixture(t)
	w := fx.webhook()
	ping, err := fx.PingWebhook(t.Context(), "acme", "api", w.ID)
	must.OK(t, err)
	due := fx.claim(w.ID, 10)
	if len(due) != 1 || due[0].Type != ledger.EventPing || due[0].ID != ping.ID || due[0].Event != ping.Event {
		t.Fatalf("claimed %+v, want the ping %+v", due, ping)
	}
	fx.settle(w.ID, due[0], 200, 0)
	rec, err := fx.Delivery(t.Context(), "acme", "api", w.ID, ping.ID)
	must.OK(t, err)
	if string(rec.Body) != string(due[0].Body) {
		t.Errorf("the record has the body %s, want %s", rec.Body, due[0].Body)
	}
	events, err := fx.Events(t.Context(), "acme", store.EventFilter{
		Query: store.Query{Limit: 10}, Types: ledger.EventTypesFor(ledger.Read),
	})
	must.OK(t, err)
	if len(events.Data) != 0 {
		t.Errorf("the history has %s, want no events", events.Data)
	}
}

func (s suite) TestDeliveriesAreListedNewestFirst(t *testing.T) {
	fx := s.newFixture(t)
	ci, w := fx.NewSigner("cn=ci,ou=build,o=acme"), fx.webhook(ledger.EventAttestation)
	for i := range 7 {
		fx.Clock.Advance(time.Second)
		ci.Attest(sha(i), "test:go", ledger.Pass)
	}
	due := fx.claim(w.ID, 6)
	for i, d := range due {
		fx.settle(w.ID, d, []int{200, 500}[i%2], 0)
	}
	fx.Clock.Advance(time.Second)
	_, err := fx.PingWebhook(t.Context(), "acme", "api", w.ID)
	must.OK(t, err)
	ping, err := fx.PingWebhook(t.Context(), "acme", "api", w.ID)
	must.OK(t, err)

	tests := []struct {
		name   string
		filter store.DeliveryFilter
		want   int
	}{
		{"all", store.DeliveryFilter{}, 9},
		{"pending", store.DeliveryFilter{Status: outbound.DeliveryPending}, 3},
		{"succeeded", store.DeliveryFilter{Status: outbound.DeliverySucceeded}, 3},
		{"failed", store.DeliveryFilter{Status: outbound.DeliveryFailed}, 3},
		{"of an event", store.DeliveryFilter{Event: due[2].Event}, 1},
		{"of an event, pending", store.DeliveryFilter{Event: due[2].Event, Status: outbound.DeliveryPending}, 0},
		{"of an event, succeeded", store.DeliveryFilter{Event: due[2].Event, Status: outbound.DeliverySucceeded}, 1},
		{"of a ping", store.DeliveryFilter{Event: ping.Event}, 1},
		{"of a ping, failed", store.DeliveryFilter{Event: ping.Event, Status: outbound.DeliveryFailed}, 0},
		{"of an unknown event", store.DeliveryFilter{Event: "evt_none"}, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := fx.deliveries(w.ID, test.filter)
			newestFirst := slices.IsSortedFunc(got, func(a, b outbound.Delivery) int { return int(b.CreatedAt - a.CreatedAt) })
			if len(got) != test.want || !newestFirst {
				t.Errorf("%d deliveries, newest first: %v; want %d", len(got), newestFirst, test.want)
			}
		})
	}
}

func (s suite) TestAReplayStartsAtATime(t *testing.T) {
	fx := s.newFixture(t)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	var at [10]ledger.Time
	for i := range at {
		at[i] = ci.Attest(sha(i), "test:go", ledger.Pass).RecordedAt // and two events of state
		fx.Clock.Advance(time.Minute)
	}
	for _, test := range []struct {
		since ledger.Time
		want  int64
	}{
		{1, 10}, {at[0], 10}, {at[0] + 1, 9}, {at[5], 5}, {at[5] - 1, 5}, {at[9], 1}, {at[9] + 1, 0}, {fx.Now(), 0},
	} {
		if queued := fx.replay(fx.webhook(ledger.EventAttestation).ID, test.since); queued != test.want {
			t.Errorf("replay since %s queued %d, want %d", test.since, queued, test.want)
		}
	}
}
