// Package session keeps the secret of a session in a cookie.
package session

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// The names of the cookie that holds a session's secret. Browsers accept the
// first one only over https, and from no other host.
const (
	secureCookie = "__Host-ledgerd"
	plainCookie  = "ledgerd"
)

// Secret returns the secret of the request's session, or "". Over https the plain
// cookie is ignored: anyone who can answer for the host over plain http could have
// set it, to have the visitor work in their session.
func Secret(r *http.Request) string {
	if secret := cookie(r, secureCookie); secret != "" || overHTTPS(r) {
		return secret
	}
	return cookie(r, plainCookie)
}

// Secrets returns the secrets in all cookies that the request has.
func Secrets(r *http.Request) []string {
	var secrets []string
	for _, name := range []string{secureCookie, plainCookie} {
		if secret := cookie(r, name); secret != "" {
			secrets = append(secrets, secret)
		}
	}
	return secrets
}

// cookie returns the secret in the cookie of that name, or "".
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

// Cookie returns the cookie that holds a session's secret until it expires.
func Cookie(r *http.Request, secret string, expires ledger.Time) *http.Cookie {
	c := &http.Cookie{Name: plainCookie, Value: secret, Path: "/", Expires: expires.Std(), HttpOnly: true,
		SameSite: http.SameSiteLaxMode}
	if overHTTPS(r) {
		c.Name, c.Secure = secureCookie, true
	}
	return c
}

// EndedCookies returns cookies that remove a session from the browser.
func EndedCookies() []*http.Cookie {
	ended := func(name string, secure bool) *http.Cookie {
		return &http.Cookie{Name: name, Path: "/", MaxAge: -1, Expires: time.Unix(1, 0), HttpOnly: true, Secure: secure,
			SameSite: http.SameSiteLaxMode}
	}
	return []*http.Cookie{ended(secureCookie, true), ended(plainCookie, false)}
}
