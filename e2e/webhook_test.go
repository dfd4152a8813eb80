package e2e_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
)

// A webhookOrg is an org with a running server, and an admin's client of its API.
type webhookOrg struct {
	*org
	api *client.Client
}

// newHooks creates an org and starts its server, whose webhooks may post to
// loopback addresses. Variables are added to its environment and take precedence.
func newHooks(t *testing.T, variables ...string) *webhookOrg {
	t.Helper()
	o := newOrg(t)
	o.env = append(append(o.env, "LEDGERD_WEBHOOKS_ALLOWED_NETWORKS=127.0.0.0/8,::1/128"), variables...)
	o.start()
	token := o.ledgerd("token", "create", "--org", "acme", "--name", "admin", "--scope", "admin")
	api := must.Get(client.New(o.url, client.Options{Token: token}))(t)
	return &webhookOrg{o, api}
}

// add creates a webhook of acme/api. It uses the default events if there are no
// types.
func (h *webhookOrg) add(t *testing.T, url string, types ...ledger.EventType) outbound.Webhook {
	t.Helper()
	w := must.Get(h.api.CreateWebhook(t.Context(), "acme", "api", outbound.NewWebhook{URL: url, Events: types}))(t)
	return w
}

// show returns a webhook of acme/api.
func (h *webhookOrg) show(t *testing.T, id string) outbound.Webhook {
	t.Helper()
	w := must.Get(h.api.Webhook(t.Context(), "acme", "api", id))(t)
	return w
}

// waitAttempts waits until a delivery has had n attempts, and returns it.
func (h *webhookOrg) waitAttempts(t *testing.T, webhook, delivery string, n int) outbound.DeliveryRecord {
	t.Helper()
	var d outbound.DeliveryRecord
	waitFor(t, fmt.Sprintf("attempt %d of %s", n, delivery), 20*time.Second, func() bool {
		var err error
		d, err = h.api.Delivery(t.Context(), "acme", "api", webhook, delivery)
		must.OK(t, err)
		return d.Attempts >= n
	})
	return d
}

// ping sends a ping and returns its delivery after the first attempt.
func (h *webhookOrg) ping(t *testing.T, webhook string) outbound.DeliveryRecord {
	t.Helper()
	d := must.Get(h.api.PingWebhook(t.Context(), "acme", "api", webhook))(t)
	return h.waitAttempts(t, webhook, d.ID, 1)
}

// oldest returns the oldest delivery of a webhook.
func (h *webhookOrg) oldest(t *testing.T, webhook string) (oldest outbound.Delivery) {
	t.Helper()
	for d, err := range h.api.Deliveries(t.Context(), "acme", "api", webhook, client.DeliveryFilter{}) {
		must.OK(t, err)
		oldest = d
	}
	return oldest
}

// An arrival is a request that a receiver got.
type arrival struct {
	header     http.Header
	body       []byte
	receivedAt time.Time
}

// event returns the fields that all events have.
func (a arrival) event(t *testing.T) (e struct{ ID, Type, Org, Repo, Commit string }) {
	t.Helper()
	must.OK(t, json.Unmarshal(a.body, &e, json.MatchCaseInsensitiveNames(true)))
	return e
}

// A sink is a receiver that queues all deliveries.
type sink struct {
	url      string
	arrivals chan arrival
}

// newSink starts a sink that responds with a status.
func newSink(t *testing.T, status int) *sink {
	t.Helper()
	s := &sink{arrivals: make(chan arrival, 10_000)}
	s.url = serve(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			s.arrivals <- arrival{r.Header, body, time.Now()}
		}
		w.WriteHeader(status)
	})
	return s
}

// serve serves HTTP on a free port of a loopback address and returns the URL.
func serve(t *testing.T, host string, handler http.HandlerFunc) string {
	t.Helper()
	listener := must.Get(net.Listen("tcp", net.JoinHostPort(host, "0")))(t)
	web := httptest.NewUnstartedServer(handler)
	web.Listener.Close()
	web.Listener = listener
	web.Start()
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return web.URL
}

// next returns the next delivery. It fails the test after 20 s.
func (s *sink) next(t *testing.T) arrival {
	t.Helper()
	select {
	case a := <-s.arrivals:
		return a
	case <-time.After(20 * time.Second):
		t.Fatal("no delivery for 20 s")
	}
	return arrival{}
}

// events waits for deliveries of n events and returns them by event ID.
func (s *sink) events(t *testing.T, n int) map[string]arrival {
	t.Helper()
	all := make(map[string]arrival)
	for len(all) < n {
		a := s.next(t)
		all[a.event(t).ID] = a
	}
	return all
}

// expectNone fails the test if a delivery arrives within d.
func (s *sink) expectNone(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case a := <-s.arrivals:
		t.Errorf("unexpected delivery: %s", a.body)
	case <-time.After(d):
	}
}

// hmacOf returns the base64 form of an HMAC-SHA256, as docs/webhooks.md describes.
func hmacOf(key []byte, text string) string {
	mac := hmac.New(sha256.New, key)
	io.WriteString(mac, text)
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// signature returns the X-ledger-Signature of a body that is signed at a time.
func signature(secret string, at time.Time, body []byte) string {
	return fmt.Sprintf("t=%d, v1=%s", at.Unix(), hmacOf([]byte(secret), fmt.Sprintf("%d.%s", at.Unix(), body)))
}

// A 410 response disables the webhook. After it is activated again, a replay delivers
// the events that it missed.
func TestWebhookGone(t *testing.T) {
	t.Parallel()
	h := newHooks(t)
	gone, back := newSink(t, http.StatusGone), newSink(t, http.StatusNoContent)
	w := h.add(t, gone.url, ledger.EventAttestation)
	first := must.Get(h.attest())(t)
	if agent := gone.next(t).header.Get("User-Agent"); !strings.HasPrefix(agent, "ledgerd/") {
		t.Errorf("User-Agent is %q, want ledgerd/VERSION", agent)
	}
	waitFor(t, "the webhook to be disabled", 5*time.Second, func() bool { return !h.show(t, w.ID).Active })
	shown := h.ledgerd("webhook", "show", "acme/api", w.ID)
	for _, want := range []string{"disabled since", "410"} {
		if !strings.Contains(shown, want) {
			t.Errorf("webhook show does not print %q:\n%s", want, shown)
		}
	}
	second := must.Get(h.attest())(t)
	gone.expectNone(t, 1500*time.Millisecond)

	h.ledgerd("webhook", "update", "acme/api", w.ID, "--active", "--url", back.url)
	h.ledgerd("webhook", "replay", "acme/api", w.ID, "--since", "1h")
	got := back.events(t, 2)
	for _, id := range []string{first.Event, second.Event} {
		if _, ok := got[id]; !ok {
			t.Errorf("event %s was not replayed", id)
		}
	}
	if now := h.show(t, w.ID); now.DisabledReason != "" || now.DisabledAt != 0 || now.FailingSince != 0 {
		t.Errorf("the enabled webhook is %+v", now)
	}
}

// Events that another process writes to the database are delivered within 1.5 s.
func TestWebhookDeliversWritesOfOtherProcesses(t *testing.T) {
	t.Parallel()
	h := newHooks(t)
	s := newSink(t, http.StatusNoContent)
	h.add(t, s.url, ledger.EventAttestation)
	for range 3 {
		h.ledgerd("attest", "acme/api", "--commit", "0123456789012345678901234567890123456789", "--predicate", "test:go",
			"--status", "pass", "--key", h.keyFile)
		ended := time.Now()
		if took := s.next(t).receivedAt.Sub(ended); took > 1500*time.Millisecond {
			t.Errorf("the delivery took %s, want at most 1.5 s", took)
		} else {
			t.Logf("the delivery took %s", took)
		}
	}
}

// A signing secret is in the response that creates it, and nowhere else: no
// output and no log repeats it.
func TestWebhookSecretIsShownOnce(t *testing.T) {
	t.Parallel()
	h := newHooks(t, "LEDGERD_LOG_LEVEL=debug")
	s := newSink(t, http.StatusInternalServerError)
	secret := h.ledgerd("webhook", "add", "acme/api", "--url", s.url)
	if !regexp.MustCompile(`^whsec_[A-Za-z0-9+/]{43}=$`).MatchString(secret) {
		t.Fatalf("webhook add printed %q", secret)
	}
	id := regexp.MustCompile(`whk_\w+`).FindString(h.ledgerd("webhook", "list", "acme/api"))
	rotated := h.ledgerd("webhook", "rotate", "acme/api", id)
	d := h.ping(t, id)

	var output strings.Builder
	for _, args := range [][]string{{"list", "acme/api"}, {"show", "acme/api", id}, {"deliveries", "acme/api", id},
		{"deliveries", "acme/api", id, d.ID}} {
		for _, format := range []string{"table", "json"} {
			output.WriteString(h.ledgerd(append(append([]string{"webhook"}, args...), "-o", format)...))
		}
	}
	h.signal(os.Interrupt)
	output.WriteString(h.log.String())

	for _, secret := range []string{secret, rotated} {
		if strings.Contains(output.String(), strings.TrimPrefix(secret, "whsec_")) {
			t.Errorf("a signing secret is shown again:\n%s", output.String())
		}
	}
}

// decode decodes base64.
func decode(t *testing.T, text string) []byte {
	t.Helper()
	return must.Get(base64.StdEncoding.DecodeString(text))(t)
}
