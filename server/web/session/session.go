// Package session stores the secret of a session in a cookie.
package session

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// The names of the cookie that holds a session's secret. Browsers accept the first one
// only over HTTPS, and only from this host (RFC 6265bis, cookie name prefixes).
const (
	secureCookie = "__Host-ledgerd"
	plainCookie  = "ledgerd"
)

// Secret returns the secret of the request's session, or "". Over HTTPS it ignores the
// plain cookie: anyone who can spoof the host over HTTP could have set it, to make the
// user work in the attacker's session.
func Secret(r *http.Request) string {
	if secret := cookie(r, secureCookie); secret != "" || overHTTPS(r) {
		return secret
	}
	return cookie(r, plainCookie)
}

// Secrets returns the secrets in all session cookies of the request.
func Secrets(r *http.Request) []string {
	var secrets []string
	for _, name := range []string{secureCookie, plainCookie} {
		if secret := cookie(r, name); secret != "" {
			secrets = append(secrets, secret)
		}
	}
	return secrets
}

// cookie returns the secret in a cookie, or "".
func cookie(r *http.Request, name string) string {
	if c, err := r.Cookie(name); err == nil && len(c.Value) <= 128 {
		return c.Value
	}
	return ""
}

// overHTTPS reports whether the browser uses HTTPS, possibly to a proxy in front of
// this server. Browsers send Origin with every form. They send Sec-Fetch-Site only to
// potentially trustworthy origins: over HTTPS, or on the local machine.
func overHTTPS(r *http.Request) bool {
	switch scheme, _, _ := strings.Cut(r.Header.Get("Origin"), "://"); {
	case r.TLS != nil, scheme == "https":
		return true
	case scheme == "http":
		return false
	}
	return r.Header.Get("Sec-Fetch-Site") != "" && !IsLoopback(r.Host)
}

// IsLoopback reports whether a Host header names the local machine.
func IsLoopback(host string) bool {
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

// Cookie returns a cookie with a session's secret, in the form that fits the request.
func Cookie(r *http.Request, secret string, expires ledger.Time) *http.Cookie {
	c := &http.Cookie{Name: plainCookie, Value: secret, Path: "/", Expires: expires.Std(), HttpOnly: true,
		SameSite: http.SameSiteLaxMode}
	if overHTTPS(r) {
		c.Name, c.Secure = secureCookie, true
	}
	return c
}

// ExpiredCookies returns cookies that remove a session from the browser.
func ExpiredCookies() []*http.Cookie {
	expired := func(name string, secure bool) *http.Cookie {
		return &http.Cookie{Name: name, Path: "/", MaxAge: -1, Expires: time.Unix(1, 0), HttpOnly: true, Secure: secure,
			SameSite: http.SameSiteLaxMode}
	}
	return []*http.Cookie{expired(secureCookie, true), expired(plainCookie, false)}
}
