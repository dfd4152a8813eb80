package issuer_test

import (
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger/internal/issuer"
)

func TestParse(t *testing.T) {
	const notURL = "not the URL of an issuer"
	for s, want := range map[string]string{ // part of the error
		"https://login.example.com":                     "",
		"https://login.example.com/realms/":             "",
		"http://[::1]:8080":                             "",
		"https://a.example/" + strings.Repeat("x", 482): "",
		"https://a.example/" + strings.Repeat("x", 483): "too long: at most 500 bytes",
		"":                          notURL,
		"login.example.com":         notURL,
		"https://":                  notURL,
		"https://[::1":              notURL,
		"https://me@a.example":      notURL,
		"https://a.example?":        notURL,
		"https://a.example#":        notURL,
		"https://a.example/a b":     notURL,
		"ftp://login.example.com":   "use https or http",
		"HTTPS://login.example.com": "",
	} {
		u, err := issuer.Parse(s, 500)
		if want == "" && err == nil && strings.EqualFold(u.String(), s) {
			continue
		}
		if want == "" || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: got %v, %v, want the error %q", s, u, err, want)
		}
	}
}
