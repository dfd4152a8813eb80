package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
)

// claim claims the due deliveries of a webhook, like the dispatcher.
func (b *backend) claim(webhook string) (outbound.Endpoint, []outbound.DueDelivery) {
	b.t.Helper()
	endpoint, due, err := b.store.Claim(b.t.Context(), webhook, 100, time.Minute)
	must.OK(b.t, err)
	return endpoint, due
}

// recordOutcome records an attempt of a delivery with an HTTP status, or without a
// response if it is 0.
func (b *backend) recordOutcome(
	webhook string, d outbound.DueDelivery, status outbound.DeliveryStatus, httpStatus int,
) {
	b.t.Helper()
	attempt := outbound.Attempt{
		At: b.clock.time(), DurationMS: 12,
		Request: outbound.AttemptRequest{
			URL: "https://ci.example.com", Headers: map[string][]string{"X-Ledger-Event": {string(d.Type)}}},
	}
	switch {
	case httpStatus == 0:
		attempt.Error = "connection refused"
	default:
		attempt.Response = outbound.AttemptResponse{Status: httpStatus, Headers: map[string][]string{"Server": {"ci"}},
			Body: "it\ufffds", Truncated: true}
		if httpStatus >= 300 {
			attempt.Error = fmt.Sprintf("the receiver returned %d", httpStatus)
		}
	}

	outcome := outbound.Outcome{Webhook: webhook, Delivery: d.ID, Attempt: attempt, Status: status, Tries: d.Tries,
		Lease: d.Lease}
	if status == outbound.DeliveryPending {
		outcome.RetryAt = b.clock.time().Add(5 * time.Minute)
	}
	must.OK(b.t, b.store.RecordOutcomes(b.t.Context(), []outbound.Outcome{outcome}, 0))
}

func TestDeliveries(t *testing.T) {
	b := newBackend(t)
	w := b.webhook(`{"url":"https://ci.example.com"}`)
	at := webhooksPath + "/" + w.ID + "/deliveries"
	if got := string(b.get(at).want(200).body); got != `{"data":[]}` {
		t.Errorf("before the first event: %s", got)
	}
	b.attest(b.signer("cn=ci,ou=build,o=acme").statement(t, commitID(1), "test:go", ledger.Pass, 1)).want(201)
	events := decode[ledger.Page[ledger.AttestationEvent]](response{t, "events", 200, nil, eventsOf(b, "attestation")})
	_, due := b.claim(w.ID)
	if len(due) != 3 || due[0].Type != ledger.EventAttestation || due[0].Event != events.Data[0].ID {
		t.Fatalf("due: %+v, want an attestation and two transitions", due)
	}
	succeeded, pending, failed := due[0], due[1], due[2]
	b.recordOutcome(w.ID, succeeded, outbound.DeliverySucceeded, 204)
	b.recordOutcome(w.ID, pending, outbound.DeliveryPending, 500)
	b.recordOutcome(w.ID, failed, outbound.DeliveryFailed, 0)

	names := map[string]string{succeeded.ID: "s", pending.ID: "p", failed.ID: "f"}
	for query, want := range map[string]string{
		"":                        "fps",
		"?status=succeeded":       "s",
		"?status=pending":         "p",
		"?status=failed":          "f",
		"?event=" + pending.Event: "p",
		"?event=" + failed.Event:  "f",
		"?event=" + failed.Event + "&status=failed":  "f",
		"?event=" + failed.Event + "&status=pending": "",
		"?event=evt_01KAJ8Q0M6R4YB0J3X5T9ZC2DE":      "",
		"?limit=2":                                   "fp",
	} {
		got := ""
		for _, d := range decode[ledger.Page[outbound.Delivery]](b.get(at + query).want(200)).Data {
			got += names[d.ID]
		}
		if got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}

	now := b.clock.time()
	for _, test := range []struct {
		due  outbound.DueDelivery
		want outbound.Delivery
	}{
		{succeeded, outbound.Delivery{Status: outbound.DeliverySucceeded, LastStatus: 204}},
		{pending, outbound.Delivery{Status: outbound.DeliveryPending, LastStatus: 500,
			LastError: "the receiver returned 500", NextAttemptAt: now.Add(5 * time.Minute)}},
		{failed, outbound.Delivery{Status: outbound.DeliveryFailed, LastError: "connection refused"}},
	} {
		want := test.want
		want.ID, want.Webhook, want.Event, want.Type, want.Attempts, want.CreatedAt = test.due.ID, w.ID, test.due.Event,
			test.due.Type, 1, now
		read := b.get(at + "/" + want.ID).want(200)
		got := decode[outbound.DeliveryRecord](read)
		if got.Delivery != want {
			t.Errorf("read %+v, want %+v", got.Delivery, want)
		}
		if !strings.Contains(string(read.body), `"body":`+string(test.due.Body)) {
			t.Errorf("read %s, want body %s", read.body, test.due.Body)
		}
		b.send(request{method: "GET", path: at + "/" + want.ID, token: b.admin,
			header: map[string]string{"If-None-Match": read.header.Get("ETag")}}).want(304)
	}
}

// eventsOf returns a page of acme's events of the given types.
func eventsOf(b *backend, types string) []byte {
	b.t.Helper()
	return b.get("/v1/orgs/acme/events?types=" + types).want(200).body
}

// A delivery has the request and the response of every attempt.
func TestDeliveryHistory(t *testing.T) {
	b := newBackend(t)
	w := b.webhook(`{"url":"https://ci.example.com"}`)
	at := b.post(webhooksPath+"/"+w.ID+"/ping", "").want(202).header.Get("Location")
	if got := string(b.get(at).want(200).body); !strings.Contains(got, `"history":[]`) {
		t.Errorf("before the first attempt: %s", got)
	}
	for _, attempt := range []struct {
		status     outbound.DeliveryStatus
		httpStatus int
	}{{outbound.DeliveryPending, 0}, {outbound.DeliverySucceeded, 200}} {
		_, due := b.claim(w.ID)
		if len(due) != 1 {
			t.Fatalf("%d deliveries due, want the ping", len(due))
		}
		b.recordOutcome(w.ID, due[0], attempt.status, attempt.httpStatus)
		b.clock.advance(5 * time.Minute)
	}

	resp := b.get(at).want(200)
	const request = `"request":{"url":"https://ci.example.com","headers":{"X-Ledger-Event":["ping"]}}`
	want := `"history":[{"number":1,"at":"2026-11-30T09:00:00.000Z","duration_ms":12,"error":"connection refused",` +
		request + `},` +
		`{"number":2,"at":"2026-11-30T09:05:00.000Z","duration_ms":12,` + request +
		`,"response":{"status":200,"headers":{"Server":["ci"]},"body":"it` + "\ufffd" + `s","truncated":true}}]`
	if !strings.Contains(string(resp.body), want) {
		t.Errorf("read\n%s, want it to contain\n%s", resp.body, want)
	}
}

func TestPingWebhook(t *testing.T) {
	b := newBackend(t)
	w := b.webhook(`{"url":"https://ci.example.com","events":["policy"]}`)
	at := webhooksPath + "/" + w.ID
	for _, body := range []string{"", "{}"} {
		resp := b.post(at+"/ping", body).want(202)
		d := decode[outbound.Delivery](resp)
		if d.Webhook != w.ID || d.Type != ledger.EventPing || d.Status != outbound.DeliveryPending || d.Attempts != 0 ||
			d.NextAttemptAt != b.clock.time() {
			t.Errorf("pinged with %+v", d)
		}
		if got := resp.header.Get("Location"); got != at+"/deliveries/"+d.ID {
			t.Errorf("Location: %s, want that of %s", got, d.ID)
		}
		record := decode[outbound.DeliveryRecord](b.get(at + "/deliveries/" + d.ID).want(200))
		want := string(ledger.Render(
			ledger.PingEvent{ID: d.Event, Org: "acme", Repo: "api", Webhook: w.ID, Timestamp: b.clock.time()}))
		if string(record.Body) != want {
			t.Errorf("body %s, want %s", record.Body, want)
		}
		if list := decode[ledger.Page[outbound.Delivery]](
			b.get(at + "/deliveries?event=" + d.Event).want(200)); len(list.Data) != 1 || list.Data[0] != d {
			t.Errorf("listed by its event: %+v", list.Data)
		}
	}
	if got := string(eventsOf(b, "attestation,state,policy,radar")); got != `{"data":[]}` {
		t.Errorf("history after a ping: %s", got)
	}

	b.post(at+"/ping", `{"event":"policy"}`).wantFields(400, ledger.CodeUnknownField, "event")
	b.post(at+"/ping", `[]`).wantProblem(400, ledger.CodeInvalidJSON)
	b.send(request{method: "POST", path: at + "/ping", token: b.admin, body: "x=1",
		header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}}).
		wantProblem(415, ledger.CodeUnsupportedMediaType)
	b.post(at+"/ping?event=policy", "").wantFields(400, ledger.CodeUnknownParameter, "event")
	if list := decode[ledger.Page[outbound.Delivery]](b.get(at + "/deliveries").want(200)); len(list.Data) != 2 {
		t.Errorf("%d deliveries, want two pings", len(list.Data))
	}
}

// A redelivery sends the same body and ids, whatever the status of the delivery.
func TestRedeliver(t *testing.T) {
	b := newBackend(t)
	w := b.webhook(`{"url":"https://ci.example.com","events":["attestation"]}`)
	b.attest(b.signer("cn=ci,ou=build,o=acme").statement(t, commitID(1), "test:go", ledger.Pass, 1)).want(201)
	_, first := b.claim(w.ID)
	b.recordOutcome(w.ID, first[0], outbound.DeliveryFailed, 500)
	b.clock.advance(time.Second)

	at := webhooksPath + "/" + w.ID + "/deliveries/" + first[0].ID
	resp := b.post(at+"/redeliver", "").want(202)
	d := decode[outbound.Delivery](resp)
	if d.ID != first[0].ID || d.Status != outbound.DeliveryPending || d.Attempts != 1 || d.LastStatus != 500 ||
		d.NextAttemptAt != b.clock.time() || resp.header.Get("Location") != at {
		t.Errorf("redelivered as %+v, at %s", d, resp.header.Get("Location"))
	}
	_, second := b.claim(w.ID)
	if len(second) != 1 || second[0].ID != first[0].ID || second[0].Event != first[0].Event ||
		string(second[0].Body) != string(first[0].Body) || second[0].Tries != 0 {
		t.Errorf("redelivered %+v, first %+v", second, first)
	}
	b.recordOutcome(w.ID, second[0], outbound.DeliverySucceeded, 200)
	if got := decode[outbound.DeliveryRecord](b.get(at).want(200)); got.Status != outbound.DeliverySucceeded ||
		len(got.History) != 2 {
		t.Errorf("delivery %+v", got)
	}
}

func TestReplayWebhook(t *testing.T) {
	b := newBackend(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	for n := range 3 { // each causes an attestation and two transitions
		b.attest(ci.statement(t, commitID(n), "test:go", ledger.Pass, n)).want(201)
		b.clock.advance(time.Hour)
	}
	at := webhooksPath + "/" + b.webhook(`{"url":"https://ci.example.com","events":["attestation","policy"]}`).ID
	for _, want := range []int64{2, 0} { // then all are pending
		got := decode[outbound.Replayed](b.post(at+"/replay", `{"since":"2026-11-30T11:00:00+01:00"}`).want(202))
		if got.Queued != want {
			t.Errorf("%d queued, want %d", got.Queued, want)
		}
	}

	for name, test := range map[string]struct {
		body   string
		status int
		code   ledger.Code
		fields []string
	}{
		"missing":       {`{}`, 422, ledger.CodeInvalidField, []string{"since"}},
		"future":        {fmt.Sprintf(`{"since":%q}`, b.clock.time()+1), 422, ledger.CodeInvalidField, []string{"since"}},
		"date":          {`{"since":"2026-11-30"}`, 400, ledger.CodeInvalidJSON, []string{"since"}},
		"empty":         {`{"since":""}`, 400, ledger.CodeInvalidJSON, []string{"since"}},
		"duration":      {`{"since":"1h"}`, 400, ledger.CodeInvalidJSON, []string{"since"}},
		"unknown field": {`{"from":"2026-11-30T09:00:00Z"}`, 400, ledger.CodeUnknownField, []string{"from"}},
		"white space":   {" ", 400, ledger.CodeInvalidJSON, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b.in(t).post(at+"/replay", test.body).wantFields(test.status, test.code, test.fields...)
		})
	}
	b.post(at+"/replay", "").wantProblem(415, ledger.CodeUnsupportedMediaType)
}

// Requests that queue deliveries of an inactive webhook are rejected.
func TestInactiveWebhook(t *testing.T) {
	b := newBackend(t)
	w := b.webhook(`{"url":"https://ci.example.com"}`)
	at := webhooksPath + "/" + w.ID
	d := decode[outbound.Delivery](b.post(at+"/ping", "").want(202))
	_, due := b.claim(w.ID)
	must.OK(t, b.store.RecordOutcomes(t.Context(), []outbound.Outcome{{
		Webhook: w.ID, Delivery: due[0].ID, Status: outbound.DeliveryFailed, Disable: "the receiver returned 410",
		Tries: due[0].Tries, Lease: due[0].Lease,
		Attempt: outbound.Attempt{
			At: b.clock.time(), Error: "the receiver returned 410",
			Request: outbound.AttemptRequest{URL: w.URL}, Response: outbound.AttemptResponse{Status: 410},
		},
	}}, 0))
	disabled := decode[outbound.Webhook](b.get(at).want(200))
	if disabled.Active || disabled.DisabledReason != "the receiver returned 410" ||
		disabled.DisabledAt != b.clock.time() || disabled.FailingSince != b.clock.time() {
		t.Errorf("disabled as %+v", disabled)
	}

	since := fmt.Sprintf(`{"since":%q}`, b.clock.time())
	b.post(at+"/ping", "").wantProblem(409, ledger.CodeWebhookInactive)
	b.post(at+"/replay", since).wantProblem(409, ledger.CodeWebhookInactive)
	b.post(at+"/deliveries/"+d.ID+"/redeliver", "").wantProblem(409, ledger.CodeWebhookInactive)
	b.post(at+"/rotate", "").want(200)
	b.attest(b.signer("cn=ci,ou=build,o=acme").statement(t, commitID(1), "test:go", ledger.Pass, 1)).want(201)
	if list := decode[ledger.Page[outbound.Delivery]](b.get(at + "/deliveries").want(200)); len(list.Data) != 1 {
		t.Errorf("%d deliveries, want only the ping", len(list.Data))
	}

	enabled := decode[outbound.Webhook](b.patch(at, `{"active":true}`).want(200))
	if !enabled.Active || enabled.DisabledReason != "" || enabled.DisabledAt != 0 || enabled.FailingSince != 0 {
		t.Errorf("activated as %+v", enabled)
	}
	if got := decode[outbound.Replayed](b.post(at+"/replay", since).want(202)).Queued; got != 3 {
		t.Errorf("%d queued, want the attestation and two transitions", got)
	}
	b.post(at+"/ping", "").want(202)
	b.post(at+"/deliveries/"+d.ID+"/redeliver", "").want(202)
}
