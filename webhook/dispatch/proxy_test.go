package dispatch_test

import (
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/webhook/dispatch"
)

// TestProxy sends deliveries through a proxy on a network that the guard refuses. The
// guard still refuses targets.
func TestProxy(t *testing.T) {
	t.Parallel()
	target := newReceiver(nil)
	target.StartTLS()
	defer target.Close()
	proxy := httptest.NewServer(forward(target.Listener.Addr().String()))
	defer proxy.Close()
	proxyURL, err := url.Parse(proxy.URL)
	must.OK(t, err)
	for _, c := range []struct{ url, body, err string }{
		{url: "http://public.example/x", body: "by proxy: http://public.example/x"},
		{url: "https://example.com/x"},
		{url: "http://unknown.example/x", body: "by proxy: http://unknown.example/x"},
		{url: "http://private.example/x", err: "private.example resolves to an address that is not public"},
		{url: "http://both.example/x", err: "both.example resolves to an address that is not public"},
		{url: "http://broken.example/x", err: "cannot resolve broken.example to check that its addresses are public: " +
			"DNS failure"},
		{url: "http://silent.example/x", err: "DNS timeout"},
		{url: "http://127.0.0.1/x", err: "127.0.0.1 is not a public address"},
		{url: "http://127.1/x", err: "four decimal numbers"},
		{url: proxy.URL, err: "127.0.0.1 is not a public address"},
	} {
		t.Run(c.url, func(t *testing.T) {
			dns := newDNS(t)
			dns.set("public.example", public)
			dns.set("example.com", public)
			dns.set("private.example", internal)
			dns.set("both.example", internal, public)
			dns.fail("broken.example", 2) // SERVFAIL
			dns.fail("silent.example", silence)
			g := dispatch.NewGuard(nil)
			g.SetResolver(dns.resolver())

			f := newFixture(t)
			w := f.webhook(c.url)
			id := f.ping(w).ID
			f.start(func(cfg *dispatch.Config) {
				cfg.Guard, cfg.Proxy, cfg.RootCAs = g, proxyURL, x509.NewCertPool()
				cfg.RootCAs.AddCert(target.Certificate())
			})
			d := f.attempted(w, id, 1)
			if c.err == "" && d.LastError != "" || !strings.Contains(d.LastError, c.err) {
				t.Errorf("error %q, want %q", d.LastError, c.err)
			}
			if got := d.History[0].Response.Body; got != c.body {
				t.Errorf("body %q, want %q", got, c.body)
			}
		})
	}
}

// forward returns a proxy that responds to http requests itself, and tunnels all others
// to one address.
func forward(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		if q.Method != http.MethodConnect {
			fmt.Fprintf(w, "by proxy: %s", q.URL)
			return
		}
		out, err := net.Dial("tcp", to)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer out.Close()
		w.WriteHeader(http.StatusOK)
		in, read, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer in.Close()
		go io.Copy(out, read) // starts with what the server has buffered
		io.Copy(in, out)
	}
}
