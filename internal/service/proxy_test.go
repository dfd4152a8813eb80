package service

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
)

// The client is who connected to the outermost trusted proxy, whatever it sent itself.
func TestWithClient(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")}
	cases := []struct {
		name      string
		peer      string
		forwarded []string
		want      string
	}{
		{"no proxy", "192.0.2.1:1000", nil, "192.0.2.1:1000"},
		{"a client that pretends to be another", "192.0.2.1:1000", []string{"198.51.100.7"}, "192.0.2.1:1000"},
		{"a proxy", "10.1.1.1:1000", []string{"198.51.100.7"}, "198.51.100.7:0"},
		{"a proxy without the header", "10.1.1.1:1000", nil, "10.1.1.1:1000"},
		{"a client behind a proxy that pretends to be another", "10.1.1.1:1000",
			[]string{"127.0.0.1, 198.51.100.7"}, "198.51.100.7:0"},
		{"its own header before that of the proxy", "10.1.1.1:1000",
			[]string{"127.0.0.1", "198.51.100.7"}, "198.51.100.7:0"},
		{"a client that pretends to be a proxy", "10.1.1.1:1000",
			[]string{"127.0.0.1, 10.9.9.9, 198.51.100.7"}, "198.51.100.7:0"},
		{"two proxies", "10.1.1.1:1000", []string{"198.51.100.7,10.2.2.2"}, "198.51.100.7:0"},
		{"a client in the network of proxies", "10.1.1.1:1000", []string{"10.3.3.3, 10.2.2.2"}, "10.3.3.3:0"},
		{"IPv6", "[2001:db8::1]:1000", []string{"2001:db9::7"}, "[2001:db9::7]:0"},
		{"IPv6 with a port", "[2001:db8::1]:1000", []string{"[2001:db9::7]:443"}, "[2001:db9::7]:0"},
		{"IPv6 in brackets", "[2001:db8::1]:1000", []string{"[2001:db9::7]"}, "[2001:db9::7]:0"},
		{"IPv4 with a port", "10.1.1.1:1000", []string{"198.51.100.7:51000"}, "198.51.100.7:0"},
		{"IPv4 as IPv6", "[::ffff:10.1.1.1]:1000", []string{"::ffff:198.51.100.7"}, "198.51.100.7:0"},
		{"no address", "10.1.1.1:1000", []string{"unknown"}, "10.1.1.1:1000"},
		{"no address before a proxy", "10.1.1.1:1000", []string{"unknown, 10.2.2.2"}, "10.2.2.2:0"},
		{"an empty header", "10.1.1.1:1000", []string{""}, "10.1.1.1:1000"},
		{"a unix socket", "@", []string{"198.51.100.7"}, "198.51.100.7:0"},
		{"a unix socket without the header", "@", nil, "@"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr = c.peer
			if c.peer == "@" {
				r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.UnixAddr{Net: "unix"}))
			}
			for _, value := range c.forwarded {
				r.Header.Add("X-Forwarded-For", value)
			}

			var got string
			withClient(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.RemoteAddr }), trusted).
				ServeHTTP(httptest.NewRecorder(), r)
			if got != c.want {
				t.Errorf("the client is %s, want %s", got, c.want)
			}
		})
	}
}
