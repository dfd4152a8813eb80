package session

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
)

// Below a base path, cookies are limited to it, and have the prefix that allows that.
func TestCookies(t *testing.T) {
	cases := []struct {
		base, origin string
		name, path   string
		secure       bool
	}{
		{"", "https://ledger.example.com", "__Host-ledgerd", "/", true},
		{"", "http://ledger.example.com", "ledgerd", "/", false},
		{"/tools/ledger", "https://tools.acme.example", "__Secure-ledgerd", "/tools/ledger", true},
		{"/tools/ledger", "http://tools.acme.example", "ledgerd", "/tools/ledger", false},
	}
	for _, c := range cases {
		cookies := Cookies{Base: c.base}
		r := httptest.NewRequest("POST", "/login", nil)
		r.Header.Set("Origin", c.origin)
		set := cookies.New(r, "secret", ledger.Time(1))
		if set.Name != c.name || set.Path != c.path || set.Secure != c.secure || !set.HttpOnly ||
			set.SameSite != http.SameSiteLaxMode || set.Domain != "" {
			t.Errorf("%s%s: %+v", c.origin, c.base, set)
		}

		r.AddCookie(set)
		if got := cookies.Secret(r); got != "secret" {
			t.Errorf("%s%s: the secret is %q", c.origin, c.base, got)
		}
		if expired := cookies.Expired(); !slices.ContainsFunc(expired, func(e *http.Cookie) bool {
			return e.Name == set.Name && e.Path == set.Path && e.Secure == set.Secure && e.MaxAge < 0
		}) {
			t.Errorf("%s%s: %v does not remove the cookie", c.origin, c.base, expired)
		}
	}
}

// A cookie of a server with another base path, and over HTTPS a plain one, is not accepted.
func TestForeignCookies(t *testing.T) {
	for _, test := range []struct{ base, origin, name string }{
		{"", "https://a.example", "__Secure-ledgerd"},
		{"", "https://a.example", "ledgerd"},
		{"/ledger", "https://a.example", "__Host-ledgerd"},
		{"/ledger", "https://a.example", "ledgerd"},
	} {
		r := httptest.NewRequest("POST", "/login", nil)
		r.Header.Set("Origin", test.origin)
		r.AddCookie(&http.Cookie{Name: test.name, Value: "secret"})
		if got := (Cookies{Base: test.base}).Secret(r); got != "" {
			t.Errorf("base path %q: %s is accepted", test.base, test.name)
		}
	}
}
