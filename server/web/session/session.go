// Package session stores secrets, such as that of a session, in cookies. It has links that sign a person in,
// once, on the machine of the server, and a pool for what waits for a person during a sign-in.
package session

import (
	"cmp"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// Cookies are the cookies of a server that hold a secret, by default that of a session.
//
// A server with the root of its host uses the prefix __Host- over HTTPS: browsers accept such
// a cookie only from this host, with the path / (RFC 6265bis, cookie name prefixes). Below a
// base path, that path would send the secret to every other program on the host with each
// request, and to their logs. So the cookie has the base path as its path there, and the prefix
// __Secure-, which only requires HTTPS. The price is that another host of the same domain can set
// a cookie of that name, to make a person work in its own session; it cannot read one. No cookie
// protects against the scripts of other programs on the host: to the browser, they are ours.
type Cookies struct {
	// Base is the base path of the server, without a slash at its end. It is empty if the server
	// has the root.
	Base string
	// Name is the name of the cookie over HTTP; by default ledgerd.
	Name string
	// MaxSecret is the maximum length of the secret in bytes; by default 128.
	MaxSecret int
	// HTTPS reports whether browsers use HTTPS even if a request does not show it: behind a proxy,
	// older browsers that follow a link do not.
	HTTPS bool
}

// plain returns the name of the cookie over HTTP.
func (c Cookies) plain() string { return cmp.Or(c.Name, "ledgerd") }

// secure returns the name of the cookie over HTTPS, which browsers accept only over HTTPS.
func (c Cookies) secure() string {
	if c.Base == "" {
		return "__Host-" + c.plain()
	}
	return "__Secure-" + c.plain()
}

// path returns the path of the cookies.
func (c Cookies) path() string {
	if c.Base == "" {
		return "/"
	}
	return c.Base
}

// Secret returns the secret in the cookie of the request, or "". Over HTTPS it ignores the
// plain cookie: anyone who can spoof the host over HTTP could have set it, to make the
// user work in the attacker's session.
func (c Cookies) Secret(r *http.Request) string {
	if secret := c.read(r, c.secure()); secret != "" || c.HTTPS || overHTTPS(r) {
		return secret
	}
	return c.read(r, c.plain())
}

// Secrets returns the secrets in all cookies of the request.
func (c Cookies) Secrets(r *http.Request) []string {
	var secrets []string
	for _, name := range []string{c.secure(), c.plain()} {
		if secret := c.read(r, name); secret != "" {
			secrets = append(secrets, secret)
		}
	}
	return secrets
}

// read returns the secret in the cookie with a name, or "".
func (c Cookies) read(r *http.Request, name string) string {
	if found, err := r.Cookie(name); err == nil && len(found.Value) <= cmp.Or(c.MaxSecret, 128) {
		return found.Value
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

// New returns a cookie with a secret, in the form that fits the request.
func (c Cookies) New(r *http.Request, secret string, expires ledger.Time) *http.Cookie {
	set := &http.Cookie{Name: c.plain(), Value: secret, Path: c.path(), Expires: expires.Std(), HttpOnly: true,
		SameSite: http.SameSiteLaxMode}
	if c.HTTPS || overHTTPS(r) {
		set.Name, set.Secure = c.secure(), true
	}
	return set
}

// Expired returns cookies that remove the secret from the browser.
func (c Cookies) Expired() []*http.Cookie {
	expired := func(name string, secure bool) *http.Cookie {
		return &http.Cookie{Name: name, Path: c.path(), MaxAge: -1, Expires: time.Unix(1, 0), HttpOnly: true, Secure: secure,
			SameSite: http.SameSiteLaxMode}
	}
	return []*http.Cookie{expired(c.secure(), true), expired(c.plain(), false)}
}
