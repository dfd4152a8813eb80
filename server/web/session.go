package web

import (
	"net/http"
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
func sessionOf(r *http.Request) string {
	for _, name := range []string{secureCookie, plainCookie} {
		if c, err := r.Cookie(name); err == nil && c.Value != "" && len(c.Value) <= 128 {
			return c.Value
		}
	}
	return ""
}

// overHTTPS reports whether the browser that sent a form speaks https, also to
// a proxy before this server. Browsers name the origin of every form.
func overHTTPS(r *http.Request) bool {
	return r.TLS != nil || strings.HasPrefix(r.Header.Get("Origin"), "https://")
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
