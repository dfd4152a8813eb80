package dispatch_test

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/webhook/dispatch"
)

const public, internal = "93.184.215.14", "10.0.0.5"

func TestGuardChecks(t *testing.T) {
	const refused = "webhooks.allowed_networks"
	dns := newDNS(t)
	dns.set("public.example", public)
	dns.set("private.example", internal)
	dns.set("metadata.example", "169.254.169.254")
	dns.set("both.example", internal, public)
	dns.set("six.example", "fd00::1")
	for _, c := range []struct {
		host    string
		allowed string
		err     string
	}{
		{host: public},
		{host: public + ":8443"},
		{host: "[2606:4700::1111]"},
		{host: "127.0.0.1", err: "127.0.0.1 is not a public address"},
		{host: "127.0.0.1.", err: refused},
		{host: "127.8.8.8", err: refused},
		{host: "0.0.0.0", err: refused},
		{host: "10.1.2.3", err: refused},
		{host: "172.31.255.255", err: refused},
		{host: "192.168.0.1", err: refused},
		{host: "100.100.100.200", err: refused},
		{host: "169.254.169.254", err: refused},
		{host: "168.63.129.16", err: refused},
		{host: "192.0.2.1", err: refused},
		{host: "224.0.0.1", err: refused},
		{host: "255.255.255.255", err: refused},
		{host: "[::1]", err: refused},
		{host: "[::]", err: refused},
		{host: "[fe80::1]", err: refused},
		{host: "[fe80::1%25eth0]", err: refused},
		{host: "[fd00:ec2::254]", err: refused},
		{host: "[2001:db8::1]", err: refused},
		{host: "[2002:7f00:1::]", err: refused},
		{host: "[64:ff9b::7f00:1]", err: refused},
		{host: "[::ffff:127.0.0.1]", err: "127.0.0.1 is not"},
		{host: "[::ffff:a9fe:a9fe]", err: "169.254.169.254 is not"},
		{host: "[::127.0.0.1]", err: refused},
		{host: "[::ffff:" + public + "]"},
		{host: "2130706433", err: "four decimal numbers"},
		{host: "127.1", err: "four decimal numbers"},
		{host: "0x7f.0.0.1", err: "four decimal numbers"},
		{host: "0x7f000001", err: "four decimal numbers"},
		{host: "127.0.0.1.", err: "127.0.0.1 is not"},
		{host: "127.0.0.1....", err: "empty labels"},
		{host: "127.0.0.1..", err: "empty labels"},
		{host: "public..example", err: "empty labels"},
		{host: ".public.example", err: "empty labels"},
		{host: ".", err: "empty labels"},
		{host: "public.example."},
		{host: "１２７.0.0.1", err: "ASCII"},
		{host: "localhost", err: "localhost resolves to an address that is not public (the server's setting " +
			"webhooks.allowed_networks can allow it)"},
		{host: "App.LocalHost", err: "App.LocalHost resolves to an address that is not public"}, // DNS has no such name
		{host: "localhost", allowed: "127.0.0.0/8"},
		{host: "localhost.example"},
		{host: "public.example"},
		{host: "unknown.example"},
		{host: "both.example"},
		{host: "private.example", err: "private.example resolves to an address that is not public"},
		{host: "metadata.example", err: refused},
		{host: "six.example", err: refused},

		{host: "10.1.2.3", allowed: "10.1.0.0/16"},
		{host: "10.2.2.3", allowed: "10.1.0.0/16", err: refused},
		{host: "[::ffff:10.1.2.3]", allowed: "10.1.0.0/16"},
		{host: "10.1.2.3", allowed: "::ffff:10.1.0.0/112"},
		{host: "private.example", allowed: "10.0.0.5/32"},
		{host: "[fd00::1]", allowed: "fd00::/8"},
		{host: "[fe80::1%25eth0]", allowed: "fe80::/10"},
		{host: "[64:ff9b::808:808]", allowed: "64:ff9b::/96"},
		{host: "[::ffff:10.1.2.3]", allowed: "fd00::/8", err: refused},
	} {
		t.Run(c.host+" "+c.allowed, func(t *testing.T) {
			g := dispatch.NewGuard(networks(c.allowed))
			if !strings.HasPrefix(c.host, "localhost") {
				g.SetResolver(dns.resolver())
			}
			err := g.Check(t.Context(), "http://"+c.host+"/x")
			if c.err == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var e *ledger.Error
			if !errors.As(err, &e) || e.Code != ledger.CodeInvalidField || len(e.Fields) != 1 || e.Fields[0].Field != "url" ||
				!strings.Contains(e.Fields[0].Message, c.err) {
				t.Errorf("Check = %v, want an error about url with %q", err, c.err)
			}
			if strings.HasSuffix(c.host, ".example") && strings.Contains(err.Error(), internal) {
				t.Errorf("the error %v has the address of an internal name", err)
			}
		})
	}
}

func networks(list ...string) (prefixes []netip.Prefix) {
	for _, text := range list {
		if text != "" {
			prefixes = append(prefixes, netip.MustParsePrefix(text))
		}
	}
	return prefixes
}

// TestGuardRefusesDials checks that a refused address is not dialled, even if the URL was
// accepted before.
func TestGuardRefusesDials(t *testing.T) {
	t.Parallel()
	var reached bool
	r := receive(t, func(http.ResponseWriter, *http.Request) { reached = true })
	_, port, _ := net.SplitHostPort(r.Listener.Addr().String())

	for _, c := range []struct{ host, err string }{
		{"127.0.0.1", "127.0.0.1 is not a public address"},
		{"[::ffff:127.0.0.1]", "127.0.0.1 is not a public address"},
		{"[::1]", "::1 is not a public address"},
		{"169.254.169.254", "169.254.169.254 is not a public address"},
		{"private.example", "private.example resolves to an address that is not public"},
		{"unknown.example", "cannot resolve unknown.example: no such host"},
	} {
		t.Run(c.host, func(t *testing.T) {
			dns := newDNS(t)
			dns.set("private.example", "127.0.0.1")
			g := dispatch.NewGuard(networks("10.0.0.0/8"))
			g.SetResolver(dns.resolver())
			f := newFixture(t)
			w := f.webhook("http://" + c.host + ":" + port + "/")
			id := f.ping(w).ID
			f.start(func(cfg *dispatch.Config) { cfg.Guard = g })
			d := f.attempted(w, id, 1)
			if d.Status != outbound.DeliveryPending || !strings.Contains(d.LastError, c.err) {
				t.Errorf("%s with error %q, want pending with %q", d.Status, d.LastError, c.err)
			}
		})
	}

	if reached {
		t.Error("a delivery reached the receiver")
	}
}

// TestDNSRebinding uses a name that is public when it is checked, and loopback when it
// is dialled.
func TestDNSRebinding(t *testing.T) {
	t.Parallel()
	r := receive(t, nil)
	_, port, _ := net.SplitHostPort(r.Listener.Addr().String())
	dns := newDNS(t)
	g := dispatch.NewGuard(nil)
	g.SetResolver(dns.resolver())
	f := newFixture(t)
	w := f.webhook("http://rebind.example:" + port + "/")

	dns.set("rebind.example", public)
	must.OK(t, g.Check(t.Context(), w.URL))
	dns.set("rebind.example", "127.0.0.1")
	id := f.ping(w).ID
	f.start(func(c *dispatch.Config) { c.Guard = g })
	d := f.attempted(w, id, 1)
	if !strings.Contains(d.LastError, "webhooks.allowed_networks") || r.count() != 0 {
		t.Errorf("%d requests reached the receiver; error %q", r.count(), d.LastError)
	}
}
