package web

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// The names of the cookie that holds a session's secret. Browsers take the
// first one only over https, and from no other host.
const (
	secureCookie = "__Host-ledgerd"
	plainCookie  = "ledgerd"
)

// sessionOf returns the secret of the request's session; empty for none.
// Over https the plain cookie is none: whoever can answer for the host over
// plain http could have set it, and have the visitor work in their session.
func sessionOf(r *http.Request) string {
	if secret := cookie(r, secureCookie); secret != "" || overHTTPS(r) {
		return secret
	}
	return cookie(r, plainCookie)
}

// cookie returns what a cookie may hold of a session's secret; empty for none.
func cookie(r *http.Request, name string) string {
	if c, err := r.Cookie(name); err == nil && len(c.Value) <= 128 {
		return c.Value
	}
	return ""
}

// overHTTPS reports whether the browser speaks https, also to a proxy before
// this server. Browsers name the origin of every form, and send Sec-Fetch-Site
// only to whom nobody can pose as: over https, or on the machine itself.
func overHTTPS(r *http.Request) bool {
	switch scheme, _, _ := strings.Cut(r.Header.Get("Origin"), "://"); {
	case r.TLS != nil, scheme == "https":
		return true
	case scheme == "http":
		return false
	}
	return r.Header.Get("Sec-Fetch-Site") != "" && !isLoopback(r.Host)
}

// isLoopback reports whether a Host header names the browser's own machine.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

func sessionCookie(r *http.Request, secret string, expires ledger.Time) *http.Cookie {
	c := &http.Cookie{Name: plainCookie, Value: secret, Path: "/", Expires: expires.Std(), HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if overHTTPS(r) {
		c.Name, c.Secure = secureCookie, true
	}
	return c
}

// endedCookies take a session away from the browser.
func endedCookies() []*http.Cookie {
	ended := func(name string, secure bool) *http.Cookie {
		return &http.Cookie{Name: name, Path: "/", MaxAge: -1, Expires: time.Unix(1, 0), HttpOnly: true, Secure: secure, SameSite: http.SameSiteLaxMode}
	}
	return []*http.Cookie{ended(secureCookie, true), ended(plainCookie, false)}
}

// localPath returns where to go after signing in: only ever a page of this site.
func localPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.Contains(u.Path, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}
	return next
}
