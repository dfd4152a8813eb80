package e2e_test

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
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
func (h *webhookOrg) add(t *testing.T, url string, types ...ledger.EventType) ledger.Webhook {
	t.Helper()
	w, err := h.api.CreateWebhook(t.Context(), "acme", "api", ledger.NewWebhook{URL: url, Events: types})
	must.OK(t, err)
	return w
}

// show returns a webhook of acme/api.
func (h *webhookOrg) show(t *testing.T, id string) ledger.Webhook {
	t.Helper()
	w, err := h.api.Webhook(t.Context(), "acme", "api", id)
	must.OK(t, err)
	return w
}

// waitAttempts waits until a delivery has had n attempts, and returns it.
func (h *webhookOrg) waitAttempts(t *testing.T, webhook, delivery string, n int) ledger.DeliveryRecord {
	t.Helper()
	var d ledger.DeliveryRecord
	waitFor(t, fmt.Sprintf("attempt %d of %s", n, delivery), 20*time.Second, func() bool {
		var err error
		d, err = h.api.Delivery(t.Context(), "acme", "api", webhook, delivery)
		must.OK(t, err)
		return d.Attempts >= n
	})
	return d
}

// ping sends a ping and returns its delivery after the first attempt.
func (h *webhookOrg) ping(t *testing.T, webhook string) ledger.DeliveryRecord {
	t.Helper()
	d, err := h.api.PingWebhook(t.Context(), "acme", "api", webhook)
	must.OK(t, err)
	return h.waitAttempts(t, webhook, d.ID, 1)
}

// oldest returns the oldest delivery of a webhook.
func (h *webhookOrg) oldest(t *testing.T, webhook string) (oldest ledger.Delivery) {
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

// receiveRaw reads one request from a socket and responds with 204. It returns
// the lines of the request's head and its body.
func receiveRaw(t *testing.T, listener net.Listener) (head []string, body []byte) {
	t.Helper()
	conn, err := listener.Accept()
	must.OK(t, err)
	defer conn.Close()

	in := bufio.NewReader(conn)
	length := 0
	for {
		line, err := in.ReadString('\n')
		must.OK(t, err)
		if line == "\r\n" {
			break
		}
		head = append(head, strings.TrimSuffix(line, "\r\n"))
		fmt.Sscanf(line, "Content-Length: %d", &length)
	}

	body = make([]byte, length)
	_, err = io.ReadFull(in, body)
	must.OK(t, err)

	_, err = io.WriteString(conn, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
	must.OK(t, err)
	return head, body
}

// The bytes of a delivery are as docs/webhooks.md describes them.
func TestWebhookOnTheWire(t *testing.T) {
	t.Parallel()
	h := newHooks(t)
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { listener.Close() })
	w := h.add(t, "http://"+listener.Addr().String()+"/ledger?from=acme", ledger.EventAttestation)
	record, err := h.attest()
	must.OK(t, err)

	head, body := receiveRaw(t, listener)
	t1 := checkRaw(t, w, head, body)
	if head[0] != "POST /ledger?from=acme HTTP/1.1" {
		t.Errorf("the request line is %q", head[0])
	}
	if !slices.Contains(head, "webhook-id: "+record.Event) {
		t.Errorf("head lacks webhook-id: %s:\n%s", record.Event, strings.Join(head, "\n"))
	}
	stored, err := h.api.Attestation(t.Context(), "acme", "api", record.ID)
	must.OK(t, err)
	envelope, err := h.api.Envelope(t.Context(), "acme", "api", record.ID)
	must.OK(t, err)
	want := fmt.Sprintf(`{"id":%q,"type":"attestation","org":"acme","repo":"api","commit":%q,"predicate":"test:go",`+
		`"identity":"cn=ci,ou=build,o=acme","result":{"status":"pass","duration_ms":12},"timestamp":%q,`+
		`"attestation":%q,"payload_digest":%q,"key":%q,"envelope_digest":"sha256:%x"}`,
		record.Event, record.Commit, record.RecordedAt, record.ID, record.PayloadDigest,
		stored.Verification.Key, sha256.Sum256(envelope))
	if string(body) != want {
		t.Errorf("body:\n got %s\nwant %s", body, want)
	}
	if history := h.rawHistory(); !bytes.Contains(history, body) {
		t.Errorf("the history lacks these bytes:\n%s\n%s", body, history)
	}

	// Redelivery sends the same event and bytes, signed at another time.
	d := h.waitAttempts(t, w.ID, h.oldest(t, w.ID).ID, 1)
	time.Sleep(1100 * time.Millisecond)
	_, err = h.api.Redeliver(t.Context(), "acme", "api", w.ID, d.ID)
	must.OK(t, err)
	head, redelivered := receiveRaw(t, listener)
	if t2 := checkRaw(t, w, head, redelivered); t2 == t1 {
		t.Errorf("redelivered with the same t=%s", t1)
	}
	if !bytes.Equal(redelivered, body) || !slices.Contains(head, "webhook-id: "+record.Event) ||
		!slices.Contains(head, "X-ledger-Delivery: "+d.ID) {
		t.Errorf("redelivered as\n%s\n\n%s", strings.Join(head, "\n"), redelivered)
	}
}

// checkRaw checks the head of a delivery and returns t of its signature, in Unix
// seconds.
func checkRaw(t *testing.T, w ledger.Webhook, head []string, body []byte) string {
	t.Helper()
	text := strings.Join(head, "\n")
	match := regexp.MustCompile(`(?m)^X-ledger-Signature: t=([0-9]+), v1=([A-Za-z0-9+/]{43}=)$`).FindStringSubmatch(text)
	if match == nil {
		t.Fatalf("head lacks a valid X-ledger-Signature:\n%s", text)
	}
	if want := hmacOf([]byte(w.Secret), match[1]+"."+string(body)); match[2] != want {
		t.Errorf("v1 is %s, want %s", match[2], want)
	}
	if strings.Count(strings.ToLower(text), "x-ledger-signature") != 1 {
		t.Errorf("head does not have exactly one signature:\n%s", text)
	}

	for _, want := range []string{"Content-Type: application/json", "X-ledger-Event: attestation", "webhook-timestamp: " +
		match[1]} {
		if !slices.Contains(head, want) {
			t.Errorf("head lacks %s:\n%s", want, text)
		}
	}
	if !regexp.MustCompile(`(?m)^User-Agent: ledgerd/\S+$`).MatchString(text) {
		t.Errorf("head lacks User-Agent: ledgerd/VERSION:\n%s", text)
	}
	return match[1]
}

// rawHistory returns the body of the first page of the history.
func (o *org) rawHistory() []byte {
	o.t.Helper()
	request, err := http.NewRequestWithContext(o.t.Context(), http.MethodGet, o.url+"/v1/orgs/acme/events", nil)
	must.OK(o.t, err)
	request.Header.Set("Authorization", "Bearer "+o.token)
	request.Header.Set("Accept", "application/json")
	response, err := http.DefaultClient.Do(request)
	must.OK(o.t, err)
	defer response.Body.Close()
	return must.Get(io.ReadAll(response.Body))(o.t)
}

// The Go library of Standard Webhooks verifies our deliveries, and during the
// overlap of a rotation with both secrets.
func TestStandardWebhooksInGo(t *testing.T) {
	t.Parallel()
	h := newHooks(t)
	s := newSink(t, http.StatusNoContent)
	old := h.add(t, s.url)
	verify := func(secret string, a arrival) error {
		library, err := standard.NewWebhook(secret)
		must.OK(t, err)
		return library.Verify(a.body, a.header)
	}

	_, err := h.attest()
	must.OK(t, err)
	first := s.next(t)
	if err := verify(old.Secret, first); err != nil {
		t.Errorf("%v: %v", first.header, err)
	}
	first.body = bytes.Replace(first.body, []byte("acme"), []byte("acne"), 1)
	if verify(old.Secret, first) == nil {
		t.Error("a changed body was verified")
	}

	rotated, err := h.api.RotateWebhook(t.Context(), "acme", "api", old.ID, ledger.DefaultOverlap)
	must.OK(t, err)
	h.ping(t, old.ID)
	ping := s.next(t)
	for ping.event(t).Type != "ping" {
		ping = s.next(t)
	}
	if err := errorsOf(verify(old.Secret, ping), verify(rotated.Secret, ping)); err != "" {
		t.Errorf("during the overlap: %s\n%v", err, ping.header)
	}
}

// errorsOf returns the errors that are not nil as text, each with its index.
func errorsOf(errs ...error) (text string) {
	for i, err := range errs {
		if err != nil {
			text += fmt.Sprintf("[%d] %v ", i, err)
		}
	}
	return text
}

// A webhook gets only events of its repo and of its types. The default types do
// not include radar.
func TestWebhookGetsOnlyItsEvents(t *testing.T) {
	t.Parallel()
	h := newHooks(t)
	h.ledgerd("repo", "create", "acme/web")
	all, states, radar, web := newSink(t, 204), newSink(t, 204), newSink(t, 204), newSink(t, 204)
	if got := h.add(t, all.url).Events; slices.Contains(got, ledger.EventRadar) || len(got) != 3 {
		t.Errorf("the default types are %v", got)
	}
	h.add(t, states.url, ledger.EventState)
	h.add(t, radar.url, ledger.EventRadar)
	_, err := h.api.CreateWebhook(t.Context(), "acme", "web", ledger.NewWebhook{URL: web.url})
	must.OK(t, err)

	_, err = h.attest()
	must.OK(t, err)
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	must.OK(t, os.WriteFile(policy, []byte("requirements:\n- state: ATTESTED\n  predicate: test:*\n"), 0o600))
	h.ledgerd("policy", "apply", "acme/web", "-f", policy)

	ids := h.history()
	got := all.events(t, len(ids)-1) // the last event is of the other repo
	for _, id := range ids[:len(ids)-1] {
		if a, ok := got[id]; !ok || a.event(t).Repo != "api" {
			t.Errorf("event %s was delivered as %q", id, a.body)
		}
	}
	for range len(ids) - 2 {
		if e := states.next(t).event(t); e.Type != "state" {
			t.Errorf("the webhook for states got %v", e)
		}
	}
	if e := web.next(t).event(t); e.ID != ids[len(ids)-1] || e.Repo != "web" || e.Type != "policy" {
		t.Errorf("the other repo's webhook got %v", e)
	}
	for _, s := range []*sink{all, states, radar, web} {
		s.expectNone(t, 300*time.Millisecond)
	}
}

// A 410 response disables the webhook. After it is activated again, a replay delivers
// the events that it missed.
func TestWebhookGone(t *testing.T) {
	t.Parallel()
	h := newHooks(t)
	gone, back := newSink(t, http.StatusGone), newSink(t, http.StatusNoContent)
	w := h.add(t, gone.url, ledger.EventAttestation)
	first, err := h.attest()
	must.OK(t, err)
	gone.next(t)
	waitFor(t, "the webhook to be disabled", 5*time.Second, func() bool { return !h.show(t, w.ID).Active })
	shown := h.ledgerd("webhook", "show", "acme/api", w.ID)
	for _, want := range []string{"disabled since", "410"} {
		if !strings.Contains(shown, want) {
			t.Errorf("webhook show does not print %q:\n%s", want, shown)
		}
	}
	second, err := h.attest()
	must.OK(t, err)
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
