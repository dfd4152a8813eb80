package dispatch_test

import (
	"bufio"
	"crypto/x509"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/textproto"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/webhook"
	"github.com/ledgerd/ledgerd/webhook/dispatch"
)

// TestWire reads the raw bytes of a delivery from a socket.
func TestWire(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	w := f.webhook("http://" + listener.Addr().String() + "/hooks/ledger?of=acme")
	header := outbound.WebhookChange{Authorization: new("Bearer gateway-key")}
	must.Get(f.ChangeWebhook(t.Context(), "acme", "api", w.ID, header))(t)
	id := f.ping(w).ID
	f.start(nil)

	conn, err := listener.Accept()
	must.OK(t, err)
	defer conn.Close()
	lines, body := readRequest(t, conn)
	_, err = io.WriteString(conn, "HTTP/1.1 200 OK\r\nX-Echo: gateway-key\r\nContent-Length: 25\r\n\r\n"+
		"ok, as Bearer gateway-key")
	must.OK(t, err)

	d := f.attempted(w, id, 1)
	if d.Status != outbound.DeliverySucceeded || d.History[0].Response.Body != "ok, as ********" ||
		d.History[0].Response.Headers["X-Echo"][0] != "********" {
		t.Errorf("delivery %+v", d)
	}
	if lines[0] != "POST /hooks/ledger?of=acme HTTP/1.1" {
		t.Errorf("request line %q", lines[0])
	}
	if body != string(d.Body) {
		t.Errorf("body %s\nwant %s", body, d.Body)
	}

	// The attempt records exactly the headers that were sent, but not the value of Authorization.
	var recorded []string
	for name, values := range d.History[0].Request.Headers {
		recorded = append(recorded, name+": "+strings.Join(values, ", "))
	}
	sent := slices.Sorted(slices.Values(lines[1:]))
	slices.Sort(recorded)
	if got := recorded[0]; got == "Authorization: ********" {
		recorded[0] = "Authorization: Bearer gateway-key"
	} else {
		t.Errorf("recorded %q", got)
	}
	if !slices.Equal(recorded, sent) {
		t.Errorf("sent:\n%s\n\nrecorded:\n%s", strings.Join(sent, "\n"), strings.Join(recorded, "\n"))
	}

	for i, want := range []string{
		`Authorization: Bearer gateway-key`, `Content-Length: \d+`, `Content-Type: application/json`,
		`Host: 127\.0\.0\.1:\d+`, `User-Agent: ledgerd/test`,
		`X-ledger-Delivery: ` + id, `X-ledger-Event: ping`, `X-ledger-Signature: t=\d{10}, v1=[A-Za-z0-9+/]{43}=`,
		`webhook-id: ` + d.Event, `webhook-signature: v1,[A-Za-z0-9+/]{43}=`, `webhook-timestamp: \d{10}`,
	} {
		if i >= len(sent) || !regexp.MustCompile("^"+want+"$").MatchString(sent[i]) {
			t.Errorf("line %d does not match %s:\n%s", i, want, strings.Join(sent, "\n"))
			break
		}
	}
}

func readRequest(t *testing.T, conn net.Conn) (lines []string, body string) {
	t.Helper()
	must.OK(t, conn.SetReadDeadline(time.Now().Add(5*time.Second)))
	r := textproto.NewReader(bufio.NewReader(conn))
	length := 0
	for {
		line, err := r.ReadLine()
		must.OK(t, err)
		if line == "" {
			break
		}
		fmt.Sscanf(line, "Content-Length: %d", &length)
		lines = append(lines, line)
	}
	raw := make([]byte, length)
	_, err := io.ReadFull(r.R, raw)
	must.OK(t, err)
	return lines, string(raw)
}

// TestReceiversVerify verifies deliveries with this package and with the library of
// Standard Webhooks, over HTTP/1.1 and HTTP/2.
func TestReceiversVerify(t *testing.T) {
	t.Parallel()
	for _, proto := range []int{1, 2} {
		t.Run(fmt.Sprintf("HTTP/%d", proto), func(t *testing.T) {
			f := newFixture(t)
			r := newReceiver(func(http.ResponseWriter, *http.Request) { time.Sleep(2200 * time.Millisecond) })
			r.EnableHTTP2 = proto == 2
			r.StartTLS()
			defer r.Close()

			w := f.webhook(r.URL)
			id := f.ping(w).ID
			f.start(func(c *dispatch.Config) {
				c.RootCAs = x509.NewCertPool()
				c.RootCAs.AddCert(r.Certificate())
				c.ConnectTimeout = 2 * time.Second // does not limit the response
			})

			d := f.attempted(w, id, 1)
			if d.Status != outbound.DeliverySucceeded {
				t.Fatalf("delivery %+v", d)
			}
			got := r.all()[0]
			if got.proto != proto {
				t.Errorf("sent over HTTP/%d", got.proto)
			}
			if err := verify(hookSecret, got); err != nil {
				t.Error(err)
			}
		})
	}
}

// verify verifies a request with both libraries.
func verify(secret string, got received) error {
	if err := webhook.Verify(secret, got.header, got.body, time.Now()); err != nil {
		return err
	}
	standard, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return err
	}
	return standard.Verify(got.body, got.header)
}

func TestRotation(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := receive(t, nil)
	w := f.webhook(r.URL)
	f.start(nil)
	next := func() received {
		t.Helper()
		before := r.count()
		f.attempted(w, f.ping(w).ID, 1)
		return r.all()[before]
	}

	fresh := outbound.NewWebhookSecret()
	_, err := f.RotateWebhook(t.Context(), "acme", "api", w.ID, fresh, time.Hour)
	must.OK(t, err)
	both := next()
	if len(both.header["X-Ledger-Signature-Previous"]) != 1 {
		t.Errorf("headers during the overlap: %v", slices.Sorted(maps.Keys(both.header)))
	}
	for _, s := range []string{hookSecret, fresh} {
		if err := verify(s, both); err != nil {
			t.Errorf("during the overlap: %v", err)
		}
	}

	_, err = f.RotateWebhook(t.Context(), "acme", "api", w.ID, outbound.NewWebhookSecret(), 50*time.Millisecond)
	must.OK(t, err)
	time.Sleep(60 * time.Millisecond)
	after := next()
	if verify(hookSecret, after) == nil || verify(fresh, after) == nil {
		t.Error("an old secret verifies after the overlap")
	}
	if len(after.header["X-Ledger-Signature-Previous"]) != 0 {
		t.Error("X-Ledger-Signature-Previous is sent after the overlap")
	}
}
