package webhook_test

import (
	"context"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/webhook"
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
		{host: "１２７.0.0.1", err: "ASCII"},
		{host: "localhost", err: refused},
		{host: "public.example"},
		{host: "unknown.example"},
		{host: "both.example"},
		{host: "private.example", err: "private.example is at 10.0.0.5"},
		{host: "metadata.example", err: "169.254.169.254"},
		{host: "six.example", err: "fd00::1"},

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
			g := webhook.NewGuard(networks(c.allowed))
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
			if !errors.As(err, &e) || e.Code != ledger.CodeInvalidField || len(e.Fields) != 1 || e.Fields[0].Field != "url" || !strings.Contains(e.Fields[0].Message, c.err) {
				t.Errorf("got %v, want an error about url with %q", err, c.err)
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

// TestGuardDials has deliveries refused at the last moment, whatever their URL
// looked like before.
func TestGuardDials(t *testing.T) {
	var reached bool
	r := receive(t, func(http.ResponseWriter, *http.Request) { reached = true })
	_, port, _ := net.SplitHostPort(r.Listener.Addr().String())
	for _, c := range []struct{ host, err string }{
		{"127.0.0.1", "127.0.0.1 is not a public address"},
		{"[::ffff:127.0.0.1]", "127.0.0.1 is not a public address"},
		{"[::1]", "::1 is not a public address"},
		{"169.254.169.254", "169.254.169.254 is not a public address"},
		{"private.example", "127.0.0.1 is not a public address"},
		{"unknown.example", "the name unknown.example has no address: no such host"},
	} {
		t.Run(c.host, func(t *testing.T) {
			dns := newDNS(t)
			dns.set("private.example", "127.0.0.1")
			g := webhook.NewGuard(networks("10.0.0.0/8"))
			g.SetResolver(dns.resolver())
			b := newBench(t)
			w := b.webhook("http://" + c.host + ":" + port + "/")
			id := b.ping(w).ID
			b.start(func(cfg *webhook.Config) { cfg.Guard = g })
			d := b.attempted(w, id, 1)
			if d.Status != ledger.DeliveryPending || !strings.Contains(d.LastError, c.err) {
				t.Errorf("%s, %q; want an error with %q", d.Status, d.LastError, c.err)
			}
		})
	}
	if reached {
		t.Error("a delivery has come through")
	}
}

// TestNameChangesItsAnswer has a name that is public when it is checked and
// loopback when it is dialled.
func TestNameChangesItsAnswer(t *testing.T) {
	r := receive(t, nil)
	_, port, _ := net.SplitHostPort(r.Listener.Addr().String())
	dns := newDNS(t)
	g := webhook.NewGuard(nil)
	g.SetResolver(dns.resolver())
	b := newBench(t)
	w := b.webhook("http://rebind.example:" + port + "/")

	dns.set("rebind.example", public)
	check(t, g.Check(t.Context(), w.URL))
	dns.set("rebind.example", "127.0.0.1")
	id := b.ping(w).ID
	b.start(func(c *webhook.Config) { c.Guard = g })
	d := b.attempted(w, id, 1)
	if !strings.Contains(d.LastError, "webhooks.allowed_networks") || r.count() != 0 {
		t.Errorf("%d requests came through; the error is %q", r.count(), d.LastError)
	}
}

// TestProxy has deliveries go through a proxy on a network that the guard
// refuses, but to no target that it refuses.
func TestProxy(t *testing.T) {
	target := newReceiver(nil)
	target.StartTLS()
	defer target.Close()
	proxy := httptest.NewServer(forward(target.Listener.Addr().String()))
	defer proxy.Close()
	proxyURL, err := url.Parse(proxy.URL)
	check(t, err)
	for _, c := range []struct{ url, answer, err string }{
		{url: "http://public.example/x", answer: "by proxy: http://public.example/x"},
		{url: "https://example.com/x"},
		{url: "http://unknown.example/x", answer: "by proxy: http://unknown.example/x"},
		{url: "http://private.example/x", err: "10.0.0.5 is not a public address"},
		{url: "http://both.example/x", err: "10.0.0.5 is not a public address"},
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
			g := webhook.NewGuard(nil)
			g.SetResolver(dns.resolver())
			b := newBench(t)
			w := b.webhook(c.url)
			id := b.ping(w).ID
			b.start(func(cfg *webhook.Config) {
				cfg.Guard, cfg.Proxy, cfg.RootCAs = g, proxyURL, x509.NewCertPool()
				cfg.RootCAs.AddCert(target.Certificate())
			})
			d := b.attempted(w, id, 1)
			if c.err == "" && d.LastError != "" || !strings.Contains(d.LastError, c.err) {
				t.Errorf("error %q, want %q", d.LastError, c.err)
			}
			if got := d.History[0].Response.Body; got != c.answer {
				t.Errorf("answer %q, want %q", got, c.answer)
			}
		})
	}
}

// forward is a proxy that answers http requests itself and tunnels all others
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
		in, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer in.Close()
		go io.Copy(out, in)
		io.Copy(in, out)
	}
}

// A dns is a name server whose answers change at will.
type dns struct {
	conn net.PacketConn
	mu   sync.Mutex
	zone map[string][]netip.Addr
}

func newDNS(t *testing.T) *dns {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	check(t, err)
	d := &dns{conn: conn, zone: map[string][]netip.Addr{}}
	served := make(chan struct{})
	go func() { defer close(served); d.serve() }()
	t.Cleanup(func() { conn.Close(); <-served })
	return d
}

func (d *dns) set(name string, addrs ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.zone[name] = nil
	for _, a := range addrs {
		d.zone[name] = append(d.zone[name], netip.MustParseAddr(a))
	}
}

func (d *dns) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "udp", d.conn.LocalAddr().String())
	}}
}

func (d *dns) serve() {
	buffer := make([]byte, 1500)
	for {
		n, from, err := d.conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		if answer := d.answer(buffer[:n]); answer != nil {
			d.conn.WriteTo(answer, from)
		}
	}
}

// answer makes the reply to a query with one question (RFC 1035, section 4).
func (d *dns) answer(query []byte) []byte {
	var labels []string
	end := 12
	for end < len(query) && query[end] != 0 {
		next := end + 1 + int(query[end])
		labels = append(labels, string(query[end+1:next]))
		end = next
	}
	end += 5 // the root's label, type and class
	kind := binary.BigEndian.Uint16(query[end-4:])
	d.mu.Lock()
	addrs, known := d.zone[strings.Join(labels, ".")]
	d.mu.Unlock()
	flags := uint16(0x8180)
	if !known {
		flags |= 3 // no such name
	}
	reply := append([]byte{}, query[:2]...)
	var records []byte
	count := uint16(0)
	for _, a := range addrs {
		if a.Is4() != (kind == 1) || a.Is6() != (kind == 28) {
			continue
		}
		count++
		records = append(records, 0xc0, 12) // the question's name
		records = binary.BigEndian.AppendUint16(records, kind)
		records = append(records, 0, 1, 0, 0, 0, 0) // class IN, no time to live
		records = binary.BigEndian.AppendUint16(records, uint16(a.BitLen()/8))
		records = append(records, a.AsSlice()...)
	}
	for _, v := range []uint16{flags, 1, count, 0, 0} {
		reply = binary.BigEndian.AppendUint16(reply, v)
	}
	return append(append(reply, query[12:end]...), records...)
}
