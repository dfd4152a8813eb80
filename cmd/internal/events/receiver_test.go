package events

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/webhook"
)

// TestReceiver checks the response of a receiver to a request, and the line printed.
func TestReceiver(t *testing.T) {
	const (
		state = `{"id":"evt_1","type":"state","org":"acme","repo":"api",` +
			`"commit":"c0ffee0000000000000000000000000000000000","from":"DRAFT","to":"VALIDATING",` +
			`"cause":{"type":"attestation","id":"att_1"},"timestamp":"2026-11-20T09:00:00.000Z"}`
		ping = `{"id":"evt_2","type":"ping","org":"acme","repo":"api","webhook":"whk_1",` +
			`"timestamp":"2026-11-20T09:00:00.000Z"}`
	)
	secret := outbound.NewWebhookSecret()
	for name, test := range map[string]struct {
		receiver *Receiver
		method   string
		path     string
		signer   string // secret to sign with; empty: not signed
		age      time.Duration
		body     string
		status   int
		printed  string // part of the line; empty: no line
	}{
		"an event": {&Receiver{Secret: secret}, "POST", "/", secret, 0, state, 204,
			"state        api  c0ffee000000  DRAFT → VALIDATING; verified"},
		"a ping": {&Receiver{Secret: secret}, "POST", "/x", secret, 0, ping, 204,
			"ping         api  -             test delivery; verified"},
		"wrong secret": {&Receiver{Secret: secret}, "POST", "/", outbound.NewWebhookSecret(), 0, state,
			401, "not verified: X-ledger-Signature does not match"},
		"not signed": {&Receiver{Secret: secret}, "POST", "/", "", 0, state, 401,
			"not verified: X-ledger-Signature: got 0 headers, want 1"},
		"old signature": {&Receiver{Secret: secret}, "POST", "/", secret, time.Hour, state, 401,
			"not verified: X-ledger-Signature: t differs from now by 3600 s"},
		"receiver without a secret": {&Receiver{}, "POST", "/", secret, 0, state, 204,
			"DRAFT → VALIDATING; not verified: no --secret"},
		"custom status": {&Receiver{Secret: secret, Status: 503}, "POST", "/", secret, 0, state, 503,
			"; verified"},
		"custom status, not signed": {&Receiver{Secret: secret, Status: 503}, "POST", "/", "", 0, state, 401,
			"not verified"},
		"not JSON": {&Receiver{}, "POST", "/", "", 0, "\x1b[31mhello", 204,
			"?            -  -             not a ledgerd event; not verified"},
		"JSON, but not an event": {&Receiver{}, "POST", "/", "", 0, `{"id":7}`, 204, "not a ledgerd event"},
		"incomplete event": {&Receiver{}, "POST", "/", "", 0, `{"id":"evt_3","type":"attestation"}`, 204,
			"not a ledgerd event"},
		"control characters": {&Receiver{}, "POST", "/", "", 0,
			`{"id":"evt_4","type":"policy","repo":"\u001b[2J","timestamp":"2026-11-20T09:00:00.000Z"}`, 204, "\uFFFD[2J"},
		"lines of somebody else": {&Receiver{}, "POST", "/", "", 0,
			`{"id":"evt_5","type":"attestation","identity":"cn=ci","result":{"status":"pass\u001b[32m\r\nFAKE"},` +
				`"timestamp":"2026-11-20T09:00:00.000Z"}`, 204, "pass\uFFFD[32m FAKE"},
		"lines in a violation": {&Receiver{}, "POST", "/", "", 0,
			`{"id":"evt_6","type":"violation","identity":"cn=ci","status":"opened\nFAKE",` +
				`"timestamp":"2026-11-20T09:00:00.000Z"}`, 204, "opened FAKE"},
		"right path": {&Receiver{Path: "/ledger"}, "POST", "/ledger", "", 0, ping, 204, "test delivery"},
		"wrong path": {&Receiver{Path: "/ledger"}, "POST", "/", "", 0, ping, 404, ""},
		"GET":        {&Receiver{}, "GET", "/", "", 0, "", 405, ""},
		"too large":  {&Receiver{}, "POST", "/", "", 0, strings.Repeat(" ", 1<<20+1), 413, ""},
	} {
		t.Run(name, func(t *testing.T) {
			lines := &Printer{}
			var printed string
			test.receiver.Received = func(r Receipt) { printed += string(lines.Receipt(r)) }
			r := httptest.NewRequest(test.method, test.path, strings.NewReader(test.body))
			if test.signer != "" {
				r.Header.Set(webhook.HeaderSignature, webhook.Sign(test.signer, time.Now().Add(-test.age), []byte(test.body)))
			}

			w := httptest.NewRecorder()
			test.receiver.ServeHTTP(w, r)
			if w.Code != test.status {
				t.Errorf("status %d, want %d", w.Code, test.status)
			}
			if !strings.Contains(printed, test.printed) || (test.printed == "") != (printed == "") {
				t.Errorf("printed %q, want it to contain %q", printed, test.printed)
			}
			if strings.ContainsAny(printed, "\x1b\r") || strings.Count(printed, "\n") > 1 {
				t.Errorf("printed %q, with a control character", printed)
			}
		})
	}
}

// TestReceiverAgain checks that a repeated event is marked, and that a delivery that
// is not verified does not count.
func TestReceiverAgain(t *testing.T) {
	secret, body := outbound.NewWebhookSecret(), `{"id":"evt_1","type":"ping","repo":"api"}`
	var again []bool
	v := &Receiver{Secret: secret, Received: func(r Receipt) { again = append(again, r.Again) }}
	for _, signer := range []string{outbound.NewWebhookSecret(), secret, secret} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set(webhook.HeaderSignature, webhook.Sign(signer, time.Now(), []byte(body)))
		v.ServeHTTP(httptest.NewRecorder(), r)
	}
	if want := []bool{false, false, true}; !slices.Equal(again, want) {
		t.Errorf("repeated: %v, want %v", again, want)
	}
}

// A terminal shows all characters of an event in JSON.
func TestJSONHidesNothing(t *testing.T) {
	data := []byte("{\"identity\":\"ci\u202egro.elpmaxe\"}")
	got, err := JSON(client.Event{ID: "evt_1", Type: ledger.EventAttestation, Data: data})
	const want = `{"id":"evt_1","type":"attestation","identity":"ci\u202egro.elpmaxe"}` + "\n"
	if err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

// A pipe gets the values of a delivery in JSON as they were sent.
func TestReceiptInJSONHidesNothing(t *testing.T) {
	var b strings.Builder
	err := ReceiptPrinter(&b, true)(Receipt{Body: []byte("{\"dn\":\"ci\u202egro\"}")})
	if err != nil || !strings.Contains(b.String(), `"body":{"dn":"ci\u202egro"}`) {
		t.Errorf("%q, %v", b.String(), err)
	}
}

func TestLineOfKeyEvent(t *testing.T) {
	const data = `{"action":"revoked","purpose":"receipt","key":"0123456789abcdef","reason":"lost\u001b[2J",` +
		`"timestamp":"2026-11-20T09:00:00.000Z"}`
	for reason, want := range map[string]string{data: "revoked: lost\uFFFD[2J\n",
		strings.Replace(data, `"reason":"lost\u001b[2J",`, "", 1): "revoked\n"} {
		e, err := client.NewEvent("evt_1", ledger.EventKey, []byte(reason))
		must.OK(t, err)
		line, err := (&Printer{}).Line(e)
		want = "2026-11-20T09:00:00.000Z  key          -  -             receipt key 0123456789ab " + want
		if err != nil || string(line) != want {
			t.Errorf("%q, %v, want %q", line, err, want)
		}
	}
}
