package client_test

import (
	"slices"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
)

func TestWebhooks(t *testing.T) {
	b := newBackend(t)
	ctx := t.Context()
	created := must.Get(b.admin.CreateWebhook(
		ctx, "acme", "api", outbound.NewWebhook{URL: "https://ci.example.com", Active: new(false)}))(t)
	if created.Secret == "" || created.Active || len(created.Events) != 3 {
		t.Errorf("created %+v", created)
	}
	changed := must.Get(b.admin.ChangeWebhook(ctx, "acme", "api", created.ID, outbound.WebhookChange{
		Active: new(true), Events: &[]ledger.EventType{ledger.EventState},
	}))(t)
	if !changed.Active || !slices.Equal(changed.Events, []ledger.EventType{ledger.EventState}) ||
		changed.URL != created.URL || changed.Secret != "" {
		t.Errorf("changed to %+v", changed)
	}

	before := ledger.TimeOf(time.Now())
	rotated := must.Get(b.admin.RotateWebhook(ctx, "acme", "api", created.ID, outbound.DefaultOverlap))(t)
	if rotated.Secret == "" || rotated.Secret == created.Secret ||
		rotated.PreviousSecretUntil < before.Add(outbound.DefaultOverlap.Std()) {
		t.Errorf("rotated to %+v", rotated)
	}
	rotated = must.Get(b.admin.RotateWebhook(ctx, "acme", "api", created.ID, 0))(t)
	if rotated.PreviousSecretUntil != 0 {
		t.Errorf("without overlap, the previous secret signs until %s", rotated.PreviousSecretUntil)
	}

	read := must.Get(b.admin.Webhook(ctx, "acme", "api", created.ID))(t)
	if read.Secret != "" || read.ID != created.ID || !read.Active {
		t.Errorf("read %+v", read)
	}
	all := must.Get(client.Collect(b.admin.Webhooks(ctx, "acme", "api"), 0))(t)
	if len(all) != 1 || all[0].ID != created.ID {
		t.Errorf("listed %+v", all)
	}
	_, err := b.admin.CreateWebhook(
		ctx, "acme", "api", outbound.NewWebhook{URL: "https://ci.example.com", Events: []ledger.EventType{"deploy"}})
	if client.CodeOf(err) != ledger.CodeInvalidField {
		t.Errorf("unknown event type: %v", err)
	}

	if err := b.admin.DeleteWebhook(ctx, "acme", "api", created.ID); err != nil {
		t.Error(err)
	}
	if _, err := b.admin.Webhook(ctx, "acme", "api", created.ID); client.CodeOf(err) != ledger.CodeNotFound {
		t.Errorf("get a deleted webhook: %v", err)
	}
	if err := b.admin.DeleteWebhook(ctx, "acme", "api", created.ID); client.CodeOf(err) != ledger.CodeNotFound {
		t.Errorf("delete again: %v", err)
	}
}

func TestDeliveries(t *testing.T) {
	b := newBackend(t)
	ctx := t.Context()
	start := ledger.TimeOf(time.Now())
	key, _ := b.addKey(t, "cn=ci,ou=build,o=acme")
	if _, _, err := b.admin.Record(ctx, "acme", "api", envelope(t, key, sha, "test:go", ledger.Pass)); err != nil {
		t.Fatal(err)
	}
	w := must.Get(b.admin.CreateWebhook(ctx, "acme", "api", outbound.NewWebhook{URL: "https://ci.example.com"}))(t)

	ping := must.Get(b.admin.PingWebhook(ctx, "acme", "api", w.ID))(t)
	if ping.Type != ledger.EventPing || ping.Status != outbound.DeliveryPending {
		t.Errorf("pinged with %+v", ping)
	}
	_, due, err := b.store.Claim(ctx, w.ID, 10, time.Minute)
	if err != nil || len(due) != 1 {
		t.Fatalf("due: %v, %v", due, err)
	}
	err = b.store.RecordOutcomes(ctx, []outbound.Outcome{{
		Webhook: w.ID, Delivery: ping.ID, Status: outbound.DeliverySucceeded,
		Attempt: outbound.Attempt{At: start, Response: outbound.AttemptResponse{Status: 200, Body: "thanks"}},
	}}, 0)
	must.OK(t, err)
	record := must.Get(b.admin.Delivery(ctx, "acme", "api", w.ID, ping.ID))(t)
	if record.Status != outbound.DeliverySucceeded || len(record.History) != 1 ||
		record.History[0].Response.Body != "thanks" || string(record.Body) != string(due[0].Body) {
		t.Errorf("the ping is %+v", record)
	}

	if got := must.Get(b.admin.ReplayWebhook(ctx, "acme", "api", w.ID, start))(t); got.Queued != 3 {
		t.Errorf("replayed %+v, want the attestation and two transitions", got)
	}
	for name, test := range map[string]struct {
		filter client.DeliveryFilter
		want   int
	}{
		"all":      {client.DeliveryFilter{}, 4},
		"a status": {client.DeliveryFilter{Status: outbound.DeliveryPending}, 3},
		"an event": {client.DeliveryFilter{Event: ping.Event}, 1},
		"no match": {client.DeliveryFilter{Event: ping.Event, Status: outbound.DeliveryFailed}, 0},
	} {
		if got := must.Get(client.Collect(b.admin.Deliveries(ctx, "acme", "api", w.ID, test.filter), 0))(t); len(got) !=
			test.want {
			t.Errorf("%s: %d deliveries, want %d", name, len(got), test.want)
		}
	}
	again := must.Get(b.admin.Redeliver(ctx, "acme", "api", w.ID, ping.ID))(t)
	if again.ID != ping.ID || again.Status != outbound.DeliveryPending || again.Attempts != 1 {
		t.Errorf("redelivered as %+v", again)
	}

	must.Get(b.admin.ChangeWebhook(ctx, "acme", "api", w.ID, outbound.WebhookChange{Active: new(false)}))(t)
	if _, err := b.admin.PingWebhook(ctx, "acme", "api", w.ID); client.CodeOf(err) != ledger.CodeWebhookInactive {
		t.Errorf("ping an inactive webhook: %v", err)
	}
}
