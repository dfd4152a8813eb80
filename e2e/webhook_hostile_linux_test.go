package e2e_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
)

// receiverHost is where the receivers of the tests below are; the server may
// post to it and to no other address of this machine.
const receiverHost = "127.0.0.2"

// A hostile receiver, and what its webhook's first delivery has to look like.
type hostile struct {
	url    string
	err    string // a pattern of the first attempt's error; empty where it succeeds
	status int    // of its answer
	check  func(t *testing.T, first ledger.Attempt)
}

// Receivers of every bad kind: each is dealt with as it is written, and a good
// one beside them hardly notices.
func TestWebhooksToHostileReceivers(t *testing.T) {
	t.Parallel()
	h := newHooks(t, "LEDGERD_WEBHOOKS_ALLOWED_NETWORKS="+receiverHost+"/32",
		"LEDGERD_WEBHOOKS_TIMEOUT=2s", "LEDGERD_WEBHOOKS_CONNECT_TIMEOUT=1s", "LEDGERD_WEBHOOKS_SCHEDULE=1s,2s,4s,8s,16s")
	arrived := make(chan arrival, 10_000)
	healthy := serve(t, receiverHost, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		arrived <- arrival{r.Header, body, time.Now()}
		w.WriteHeader(http.StatusNoContent)
	})
	h.add(t, healthy, ledger.EventAttestation)
	const events = 100
	alone := h.latencies(t, arrived, events)

	private := new(atomic.Int64) // requests that must never come
	cases := hostiles(t, private)
	others := h.besideGood(t, arrived, events, len(cases))
	ids := make(map[string]string)
	for name, c := range cases {
		ids[name] = h.addWithout(t, c.url)
	}
	beside := h.latencies(t, arrived, events)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			first := h.tried(t, ids[name], h.oldest(t, ids[name]).ID, 1).History[0]
			checkAttempt(t, c, first)
		})
	}
	if n := private.Load(); n > 0 {
		t.Errorf("%d requests came to an address that is not allowed", n)
	}
	compareLatencies(t, alone, others, beside)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.server.Process.Pid))
	check(t, err)
	t.Logf("the server: %s", regexp.MustCompile(`VmHWM:.*`).Find(status))
}

// latencies attests again and again and returns how long it took, each time,
// from the posting of the attestation to the arrival of its event.
func (h *hooks) latencies(t *testing.T, arrived <-chan arrival, n int) []time.Duration {
	t.Helper()
	took := make([]time.Duration, n)
	for i := range took {
		began := time.Now()
		record, err := h.attest()
		check(t, err)
		for {
			var a arrival
			select {
			case a = <-arrived:
			case <-time.After(20 * time.Second):
				t.Fatal("the healthy receiver got nothing for 20 s")
			}
			if a.event(t).ID == record.Event {
				took[i] = a.at.Sub(began)
				break
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	slices.Sort(took)
	return took
}

// besideGood returns the latencies beside so many good receivers, which have
// their cost too. It removes them again.
func (h *hooks) besideGood(t *testing.T, arrived <-chan arrival, events, receivers int) []time.Duration {
	t.Helper()
	var ids []string
	for range receivers {
		url := serve(t, receiverHost, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
		ids = append(ids, h.add(t, url, ledger.EventAttestation).ID)
	}
	took := h.latencies(t, arrived, events)
	for _, id := range ids {
		check(t, h.api.DeleteWebhook(t.Context(), "acme", "api", id))
	}
	return took
}

// compareLatencies prints three sorted lists, and fails only where something is
// quite wrong: the machine may be busy.
func compareLatencies(t *testing.T, alone, good, bad []time.Duration) {
	t.Helper()
	for _, percent := range []int{50, 99, 100} {
		at := func(took []time.Duration) time.Duration {
			return took[(len(took)-1)*percent/100].Round(10 * time.Microsecond)
		}
		t.Logf("p%d: %s alone, %s beside as many good receivers, %s beside hostile ones (%.2f times the good)",
			percent, at(alone), at(good), at(bad), float64(at(bad))/float64(at(good)))
	}
	if worst := slices.Max(bad); worst > 5*time.Second {
		t.Errorf("beside hostile receivers a delivery took %s", worst)
	}
}

// addWithout makes a webhook through the command line, which need not know what
// the server forbids.
func (h *hooks) addWithout(t *testing.T, url string) string {
	t.Helper()
	before := h.env
	h.env = append(slices.Clone(before), "LEDGERD_WEBHOOKS_ALLOWED_NETWORKS=0.0.0.0/0,::/0")
	h.ledgerd("webhook", "add", "acme/api", "--url", url, "--events", "attestation")
	h.env = before
	var last string
	for w, err := range h.api.Webhooks(t.Context(), "acme", "api") {
		check(t, err)
		last = w.ID
	}
	return last
}

func checkAttempt(t *testing.T, c hostile, a ledger.Attempt) {
	t.Helper()
	if (c.err == "") != (a.Error == "") || !regexp.MustCompile(c.err).MatchString(a.Error) {
		t.Errorf("the first attempt's error is %q, want %q", a.Error, c.err)
	}
	if a.Response.Status != c.status {
		t.Errorf("its status is %d, want %d", a.Response.Status, c.status)
	}
	if a.DurationMS > 4000 {
		t.Errorf("it took %d ms with a time-out of 2 s", a.DurationMS)
	}
	if len(a.Response.Body) > 16<<10 {
		t.Errorf("%d bytes of its answer are kept", len(a.Response.Body))
	}
	if c.check != nil {
		c.check(t, a)
	}
}

func truncated(t *testing.T, a ledger.Attempt) {
	t.Helper()
	if !a.Response.Truncated {
		t.Errorf("the answer is not marked as cut: %+v", a.Response)
	}
}

// hostiles starts all receivers. Private counts what reaches those that must
// not be reached.
func hostiles(t *testing.T, private *atomic.Int64) map[string]hostile {
	t.Helper()
	forbidden := serve(t, "127.0.0.1", func(http.ResponseWriter, *http.Request) { private.Add(1) })
	_, port, err := net.SplitHostPort(strings.TrimPrefix(forbidden, "http://"))
	check(t, err)
	stop := make(chan struct{})
	most := new(atomic.Int64)
	receivers := badAnswers(t, stop, most)
	t.Cleanup(func() { close(stop) }) // before the receivers end, which were started before: they wait for it
	receivers["redirects to a private address"] = hostile{
		url: serve(t, receiverHost, http.RedirectHandler(forbidden, http.StatusFound).ServeHTTP),
		err: "redirects are not followed", status: http.StatusFound,
	}
	receivers["has a bad certificate"] = hostile{url: badCertificate(t), err: "certificate"}
	const refused = `127\.0\.0\.1 .*webhooks\.allowed_networks`
	receivers["is a name of a private address"] = hostile{
		url: "http://localhost:" + port, err: `^localhost resolves to .*webhooks\.allowed_networks`}
	receivers["is a private address"] = hostile{url: "http://127.0.0.1:" + port, err: refused}
	receivers["is IPv4 within IPv6"] = hostile{url: "http://[::ffff:127.0.0.1]:" + port, err: refused}
	receivers["is cloud metadata"] = hostile{url: "http://169.254.169.254/latest/meta-data",
		err: `169\.254\.169\.254 .*webhooks\.allowed_networks`}
	t.Cleanup(func() {
		// The buffers of two sockets hold some MiB.
		if n := most.Load(); n > 32<<20 {
			t.Errorf("%d MiB of an endless answer were taken", n>>20)
		}
	})
	return receivers
}

// badAnswers starts those that answer badly, or not at all. The most
// that the endless one has got rid of in one answer is noted.
func badAnswers(t *testing.T, stop <-chan struct{}, most *atomic.Int64) map[string]hostile {
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
		want    hostile
	}{
		"hangs": {func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-stop:
			}
		}, hostile{err: "no response within 2s"}},
		"answers 500": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no", http.StatusInternalServerError)
		}, hostile{err: "500", status: 500}},
		"drips its answer": {func(w http.ResponseWriter, r *http.Request) {
			drip(w, r, strings.Repeat("a", 60))
		}, hostile{status: 200, check: truncated}},
		"redirects to itself": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+r.Host+r.URL.Path, http.StatusTemporaryRedirect)
		}, hostile{err: "redirects are not followed", status: 307}},
		"answers a GB": {func(w http.ResponseWriter, _ *http.Request) {
			block := make([]byte, 1<<20)
			for sent := int64(0); sent < 1<<30; {
				n, err := w.Write(block)
				if sent += int64(n); sent > most.Load() {
					most.Store(sent)
				}
				if err != nil {
					return
				}
			}
		}, hostile{status: 200, check: truncated}},
	}
	all := make(map[string]hostile)
	for name, h := range handlers {
		h.want.url = serve(t, receiverHost, h.handler)
		all[name] = h.want
	}
	all["drips its head"] = hostile{url: dripHead(t), err: "no response within 2s"}
	return all
}

// dripHead starts a receiver that sends a byte a second from its first on.
func dripHead(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", receiverHost+":0")
	check(t, err)
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

// badCertificate starts a receiver with a certificate that nobody vouches for.
func badCertificate(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", receiverHost+":0")
	check(t, err)
	web := httptest.NewUnstartedServer(http.NotFoundHandler())
	web.Listener.Close()
	web.Listener = listener
	web.Config.ErrorLog = log.New(io.Discard, "", 0)
	web.StartTLS()
	t.Cleanup(web.Close)
	return web.URL
}

// URLs that lead to private addresses are refused when a webhook is made or
// changed, with the field and the setting.
func TestWebhookURLsThatAreRefused(t *testing.T) {
	t.Parallel()
	h := newHooks(t, "LEDGERD_WEBHOOKS_ALLOWED_NETWORKS="+receiverHost+"/32")
	w := h.add(t, "http://"+receiverHost+":9/")
	for _, url := range []string{
		"http://127.0.0.1:9/", "http://localhost:9/", "http://[::1]/", "http://[::ffff:10.0.0.1]/", "https://10.0.0.1/",
		"http://192.168.0.1/",
		"http://169.254.169.254/", "http://[fe80::1]/", "http://[fd00:ec2::254]/", "http://0.0.0.0/",
		"http://100.100.100.200/", "http://[64:ff9b::7f00:1]/",
	} {
		_, err := h.api.CreateWebhook(t.Context(), "acme", "api", ledger.NewWebhook{URL: url})
		checkRefused(t, url, err, "webhooks.allowed_networks")
		_, err = h.api.ChangeWebhook(t.Context(), "acme", "api", w.ID, ledger.WebhookChange{URL: &url})
		checkRefused(t, url, err, "webhooks.allowed_networks")
	}
	for _, url := range []string{"ftp://example.com/", "https://", "https://u:p@example.com/", "http://2130706433/",
		"http://0x7f.1/", "/ledger"} {
		_, err := h.api.CreateWebhook(t.Context(), "acme", "api", ledger.NewWebhook{URL: url})
		checkRefused(t, url, err, "")
	}
}

// checkRefused checks an error about the field url.
func checkRefused(t *testing.T, url string, err error, want string) {
	t.Helper()
	e, ok := errors.AsType[*client.Error](err)
	if !ok || e.Status != http.StatusUnprocessableEntity {
		t.Errorf("%s: %v, want 422", url, err)
		return
	}
	if f := e.Problem.Errors; len(f) != 1 || f[0].Field != "url" || !strings.Contains(f[0].Message, want) {
		t.Errorf("%s: the fields %+v, want url and %q", url, f, want)
	}
}
