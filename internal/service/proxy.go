package service

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// withClient returns next with the address of the client in RemoteAddr, where the request comes
// through trusted proxies: those in the networks, and all that connect to a unix socket. Each
// appends to X-Forwarded-For who has connected to it.
func withClient(next http.Handler, trusted []netip.Prefix) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if client, ok := clientOf(r, trusted); ok {
			r.RemoteAddr = net.JoinHostPort(client.String(), "0")
		}
		next.ServeHTTP(w, r)
	})
}

// clientOf returns the address of the client that trusted proxies report: the last one in
// X-Forwarded-For that is not a trusted proxy itself. What is before it, anybody can have sent.
func clientOf(r *http.Request, trusted []netip.Prefix) (client netip.Addr, ok bool) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err == nil && !isTrusted(peer.Addr(), trusted) {
		return client, false
	}
	if _, isSocket := r.Context().Value(http.LocalAddrContextKey).(*net.UnixAddr); err != nil && !isSocket {
		return client, false
	}

	addresses := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(addresses) - 1; i >= 0; i-- {
		address, err := forwarded(strings.TrimSpace(addresses[i]))
		if err != nil {
			return client, ok
		}
		client, ok = address, true
		if !isTrusted(address, trusted) {
			return client, true
		}
	}
	return client, ok
}

// forwarded parses an address in X-Forwarded-For, which some proxies write with a port.
func forwarded(text string) (netip.Addr, error) {
	if withPort, err := netip.ParseAddrPort(text); err == nil {
		return withPort.Addr().Unmap(), nil
	}
	address, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return address.Unmap(), err
}

// isTrusted reports whether an address is in one of the networks.
func isTrusted(address netip.Addr, networks []netip.Prefix) bool {
	address = address.Unmap().WithZone("")
	for _, network := range networks {
		if network.Contains(address) {
			return true
		}
	}
	return false
}

// below returns a request whose path begins with the base path. Some proxies leave it in the
// requests that they pass on, and others strip it: then it is added again. The same happens to
// requests of clients that reach the server directly, such as a health check. No page and no
// endpoint begins like a base path (see [config.BaseURL]), so a path has one meaning.
func below(base string, r *http.Request) *http.Request {
	if path := r.URL.Path; path == base || strings.HasPrefix(path, base+"/") || !strings.HasPrefix(path, "/") {
		return r
	}
	in := r.WithContext(r.Context()) // a copy
	in.URL = new(url.URL)
	*in.URL = *r.URL
	in.URL.Path = base + r.URL.Path
	if r.URL.RawPath != "" {
		in.URL.RawPath = base + r.URL.RawPath
	}
	return in
}
