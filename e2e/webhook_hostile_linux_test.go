package e2e_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
)

// receiverHost is the address of the receivers in this file. The server may post
// to no other address of this machine.
const receiverHost = "127.0.0.2"

// A hostileReceiver is a hostileReceiver receiver and the expected first attempt to deliver to
// it.
type hostileReceiver struct {
	url    string
	err    string // pattern for the error; empty if the attempt succeeds
	status int    // HTTP status of the response
	check  func(t *testing.T, first outbound.Attempt)
}

// Deliveries to hostile receivers end as expected, and hardly delay those to a
// healthy one.
func TestWebhooksToHostileReceivers(t *testing.T) {
	testenv.From(t, testenv.Push, "takes many seconds")
	t.Parallel()
	h := newHooks(t, "LEDGERD_WEBHOOKS_ALLOWED_NETWORKS="+receiverHost+"/32",
		"LEDGERD_WEBHOOKS_TIMEOUT=2s", "LEDGERD_WEBHOOKS_SCHEDULE=1s,2s,4s,8s,16s")
	arrived := make(chan arrival, 10_000)
	healthy := serve(t, receiverHost, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		arrived <- arrival{r.Header, body, time.Now()}
		w.WriteHeader(http.StatusNoContent)
	})
	h.add(t, healthy, ledger.EventAttestation)
	const events = 100
	baseline := h.latencies(t, arrived, events)

	forbidden := new(atomic.Int64) // requests to addresses that are not allowed
	cases := hostiles(t, forbidden)
	withHealthy := h.latenciesWithHealthy(t, arrived, events, len(cases))
	ids := make(map[string]string)
	for name, c := range cases {
		ids[name] = h.addUnchecked(t, c.url)
	}
	withHostile := h.latencies(t, arrived, events)

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			first := h.waitAttempts(t, ids[name], h.oldest(t, ids[name]).ID, 1).History[0]
			checkAttempt(t, c, first)
		})
	}
	if n := forbidden.Load(); n > 0 {
		t.Errorf("%d requests reached an address that is not allowed", n)
	}
	compareLatencies(t, baseline, withHealthy, withHostile)

	status := must.Read(t, fmt.Sprintf("/proc/%d/status", h.server.Process.Pid))
	t.Logf("the server: %s", regexp.MustCompile(`VmHWM:.*`).Find(status))
}

// latencies records n attestations, one after the other. It returns the sorted
// times from the POST of each to the arrival of its event at the receiver.
func (h *webhookOrg) latencies(t *testing.T, arrived <-chan arrival, n int) []time.Duration {
	t.Helper()
	latencies := make([]time.Duration, n)
	for i := range latencies {
		began := time.Now()
		record := must.Get(h.attest())(t)

		for {
			var a arrival
			select {
			case a = <-arrived:
			case <-time.After(20 * time.Second):
				t.Fatal("no delivery to the healthy receiver for 20 s")
			}
			if a.event(t).ID == record.Event {
				latencies[i] = a.receivedAt.Sub(began)
				break
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	slices.Sort(latencies)
	return latencies
}

// latenciesWithHealthy returns the latencies while n more receivers, all healthy,
// get the same events: these cost time, too. It deletes their webhooks at the
// end.
func (h *webhookOrg) latenciesWithHealthy(t *testing.T, arrived <-chan arrival, events, n int) []time.Duration {
	t.Helper()
	var ids []string
	for range n {
		url := serve(t, receiverHost, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
		ids = append(ids, h.add(t, url, ledger.EventAttestation).ID)
	}
	latencies := h.latencies(t, arrived, events)
	for _, id := range ids {
		must.OK(t, h.api.DeleteWebhook(t.Context(), "acme", "api", id))
	}
	return latencies
}

// compareLatencies logs percentiles of three sorted lists. It fails the test only
// if a delivery took more than 5 s, since the machine may be busy.
func compareLatencies(t *testing.T, baseline, healthy, hostile []time.Duration) {
	t.Helper()
	for _, percent := range []int{50, 99, 100} {
		at := func(sorted []time.Duration) time.Duration {
			return sorted[(len(sorted)-1)*percent/100].Round(10 * time.Microsecond)
		}
		t.Logf("p%d: %s alone, %s with more healthy receivers, %s with as many hostile ones (%.2f times as long)",
			percent, at(baseline), at(healthy), at(hostile), float64(at(hostile))/float64(at(healthy)))
	}
	if worst := slices.Max(hostile); worst > 5*time.Second {
		t.Errorf("with hostile receivers, a delivery to the healthy one took %s, want at most 5 s", worst)
	}
}

// addUnchecked creates a webhook with a command that allows every network, so
// that URLs are accepted to which the server must not connect. It returns the ID.
func (h *webhookOrg) addUnchecked(t *testing.T, url string) string {
	t.Helper()
	before := h.env
	h.env = append(slices.Clone(before), "LEDGERD_WEBHOOKS_ALLOWED_NETWORKS=0.0.0.0/0,::/0")
	h.ledgerd("webhook", "add", "acme/api", "--url", url, "--events", "attestation")
	h.env = before

	var last string
	for w, err := range h.api.Webhooks(t.Context(), "acme", "api") {
		must.OK(t, err)
		last = w.ID
	}
	return last
}

// checkAttempt checks the first attempt to deliver to a hostile receiver.
func checkAttempt(t *testing.T, c hostileReceiver, a outbound.Attempt) {
	t.Helper()
	if (c.err == "") != (a.Error == "") || !regexp.MustCompile(c.err).MatchString(a.Error) {
		t.Errorf("error is %q, want a match of %q", a.Error, c.err)
	}
	if a.Response.Status != c.status {
		t.Errorf("status is %d, want %d", a.Response.Status, c.status)
	}
	if a.DurationMS > 4000 {
		t.Errorf("the attempt took %d ms, although the timeout is 2 s", a.DurationMS)
	}
	if len(a.Response.Body) > 16<<10 {
		t.Errorf("%d bytes of the response are stored, want at most 16 KiB", len(a.Response.Body))
	}
	if c.check != nil {
		c.check(t, a)
	}
}

// truncated checks that the stored response is marked as truncated.
func truncated(t *testing.T, a outbound.Attempt) {
	t.Helper()
	if !a.Response.Truncated {
		t.Errorf("the response is not marked as truncated: %+v", a.Response)
	}
}

// hostiles starts the hostile receivers and returns them by name. It counts
// requests to addresses that are not allowed.
func hostiles(t *testing.T, requests *atomic.Int64) map[string]hostileReceiver {
	t.Helper()
	forbidden := serve(t, "127.0.0.1", func(http.ResponseWriter, *http.Request) { requests.Add(1) })
	_, port, err := net.SplitHostPort(strings.TrimPrefix(forbidden, "http://"))
	must.OK(t, err)

	stop := make(chan struct{})
	mostSent := new(atomic.Int64)
	receivers := badResponders(t, stop, mostSent)
	t.Cleanup(func() { close(stop) }) // runs before the receivers are closed, which wait for their handlers
	receivers["redirects to a private address"] = hostileReceiver{
		url: serve(t, receiverHost, http.RedirectHandler(forbidden, http.StatusFound).ServeHTTP),
		err: "redirects are not followed", status: http.StatusFound,
	}
	receivers["has an untrusted certificate"] = hostileReceiver{url: untrustedCertificate(t), err: "certificate"}

	const refused = `127\.0\.0\.1 .*webhooks\.allowed_networks`
	receivers["name of a private address"] = hostileReceiver{
		url: "http://localhost:" + port, err: `^localhost resolves to .*webhooks\.allowed_networks`}
	receivers["private address"] = hostileReceiver{url: "http://127.0.0.1:" + port, err: refused}
	receivers["IPv4-mapped IPv6 address"] = hostileReceiver{url: "http://[::ffff:127.0.0.1]:" + port, err: refused}
	receivers["cloud metadata address"] = hostileReceiver{url: "http://169.254.169.254/latest/meta-data",
		err: `169\.254\.169\.254 .*webhooks\.allowed_networks`}

	t.Cleanup(func() {
		// The buffers of the two sockets hold a few MiB.
		if n := mostSent.Load(); n > 32<<20 {
			t.Errorf("the server read up to %d MiB of the 1 GiB response, want at most 32 MiB", n>>20)
		}
	})
	return receivers
}

// badResponders starts the receivers whose responses are bad, slow or missing.
// Those that hang return when stop is closed. mostSent is set to the number of
// bytes of the longest response.
func badResponders(t *testing.T, stop <-chan struct{}, mostSent *atomic.Int64) map[string]hostileReceiver {
	t.Helper()
	drip := func(w http.ResponseWriter, r *http.Request, text string) {
		for i := range len(text) {
			if _, err := io.WriteString(w, text[i:i+1]); err != nil || http.NewResponseController(w).Flush() != nil {
				return
			}
			select {
			case <-time.After(time.Second):
			case <-r.Context().Done():
				return
			}
		}
	}

	handlers := map[string]struct {
		handler http.HandlerFunc
		want    hostileReceiver
	}{
		"hangs": {func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-stop:
			}
		}, hostileReceiver{err: "no response within 2s"}},
		"responds with 500": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no", http.StatusInternalServerError)
		}, hostileReceiver{err: "500", status: 500}},
		"drips the body": {func(w http.ResponseWriter, r *http.Request) {
			drip(w, r, strings.Repeat("a", 60))
		}, hostileReceiver{status: 200, check: truncated}},
		"redirects to itself": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+r.Host+r.URL.Path, http.StatusTemporaryRedirect)
		}, hostileReceiver{err: "redirects are not followed", status: 307}},
		"responds with 1 GiB": {func(w http.ResponseWriter, _ *http.Request) {
			block := make([]byte, 1<<20)
			for sent := int64(0); sent < 1<<30; {
				n, err := w.Write(block)
				if sent += int64(n); sent > mostSent.Load() {
					mostSent.Store(sent)
				}
				if err != nil {
					return
				}
			}
		}, hostileReceiver{status: 200, check: truncated}},
	}

	all := make(map[string]hostileReceiver)
	for name, h := range handlers {
		h.want.url = serve(t, receiverHost, h.handler)
		all[name] = h.want
	}
	all["drips the header"] = hostileReceiver{url: dripHeader(t), err: "no response within 2s"}
	return all
}

// dripHeader starts a receiver that sends its response at one byte per second.
func dripHeader(t *testing.T) string {
	t.Helper()
	listener := must.Get(net.Listen("tcp", receiverHost+":0"))(t)
	t.Cleanup(func() { listener.Close() })

	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for _, b := range []byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") {
					if _, err := conn.Write([]byte{b}); err != nil {
						return
					}
					time.Sleep(time.Second)
				}
			}()
		}
	}()

	return "http://" + listener.Addr().String()
}

// untrustedCertificate starts a receiver whose certificate is not trusted.
func untrustedCertificate(t *testing.T) string {
	t.Helper()
	listener := must.Get(net.Listen("tcp", receiverHost+":0"))(t)
	web := httptest.NewUnstartedServer(http.NotFoundHandler())
	web.Listener.Close()
	web.Listener = listener
	web.Config.ErrorLog = log.New(io.Discard, "", 0)
	web.StartTLS()
	t.Cleanup(web.Close)
	return web.URL
}

// A webhook cannot be created or changed to a URL with a private address. The
// error names the field and the setting.
func TestWebhookRefusesURLs(t *testing.T) {
	t.Parallel()
	h := newHooks(t, "LEDGERD_WEBHOOKS_ALLOWED_NETWORKS="+receiverHost+"/32")
	w := h.add(t, "http://"+receiverHost+":9/")
	for _, url := range []string{
		"http://127.0.0.1:9/", "http://localhost:9/", "http://[::1]/", "http://[::ffff:10.0.0.1]/", "https://10.0.0.1/",
		"http://192.168.0.1/",
		"http://169.254.169.254/", "http://[fe80::1]/", "http://[fd00:ec2::254]/", "http://0.0.0.0/",
		"http://100.100.100.200/", "http://[64:ff9b::7f00:1]/",
	} {
		_, err := h.api.CreateWebhook(t.Context(), "acme", "api", outbound.NewWebhook{URL: url})
		checkRefused(t, url, err, "webhooks.allowed_networks")
		_, err = h.api.ChangeWebhook(t.Context(), "acme", "api", w.ID, outbound.WebhookChange{URL: &url})
		checkRefused(t, url, err, "webhooks.allowed_networks")
	}
	for _, url := range []string{"ftp://example.com/", "https://", "https://u:p@example.com/", "http://2130706433/",
		"http://0x7f.1/", "/ledger"} {
		_, err := h.api.CreateWebhook(t.Context(), "acme", "api", outbound.NewWebhook{URL: url})
		checkRefused(t, url, err, "")
	}
}

// checkRefused checks that err is a field error of url whose message contains
// want.
func checkRefused(t *testing.T, url string, err error, want string) {
	t.Helper()
	e, ok := errors.AsType[*client.Error](err)
	if !ok || e.Status != http.StatusUnprocessableEntity {
		t.Errorf("%s: %v, want 422", url, err)
		return
	}
	if f := e.Problem.Errors; len(f) != 1 || f[0].Field != "url" || !strings.Contains(f[0].Message, want) {
		t.Errorf("%s: field errors are %+v, want one of url with %q", url, f, want)
	}
}
