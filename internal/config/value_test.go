package config

import (
	"strings"
	"testing"
)

// The path of a base URL is the base path, if the server can have it.
func TestBaseURL(t *testing.T) {
	cases := []struct {
		text, path, want string // want is a part of the error; empty if the text is valid
	}{
		{"", "", ""},
		{"https://ledger.example.com", "", ""},
		{"https://ledger.example.com/", "", ""},
		{"http://127.0.0.1:8080/ledger", "/ledger", ""},
		{"https://tools.acme.example/ledger/", "/ledger", ""},
		{"https://tools.acme.example/a/b-2/c_d.e~f", "/a/b-2/c_d.e~f", ""},
		{"https://tools.acme.example/v1.example", "/v1.example", ""},
		{"https://tools.acme.example/ledger/v1", "/ledger/v1", ""},

		{"tools.acme.example/ledger", "", "is not a base URL (use e.g. "},
		{"https:///ledger", "", "is not a base URL"},
		{"https://ada:secret@tools.acme.example/ledger", "", "is not a base URL"},
		{"https://tools.acme.example/ledger?a=b", "", "is not a base URL"},
		{"https://tools.acme.example/ledger#top", "", "is not a base URL"},
		{"https://tools.acme.example//", "", "an empty segment (use single slashes)"},
		{"https://tools.acme.example/a//b", "", "an empty segment"},
		{"https://tools.acme.example/ledger//", "", "an empty segment"},
		{"https://tools.acme.example/a/../b", "", "the segment .. (write the path that it leads to)"},
		{"https://tools.acme.example/./b", "", "the segment ."},
		{"https://tools.acme.example/a%2Fb", "", `"a%2Fb" has other characters than letters, digits`},
		{"https://tools.acme.example/a%2e%2e/b", "", `"a%2e%2e" has other characters`},
		{"https://tools.acme.example/büro", "", "has other characters"},
		{"https://tools.acme.example/{org}", "", "has other characters"},
		{"https://tools.acme.example/a;b", "", "has other characters"},
		{"https://tools.acme.example/orgs", "", "the server itself uses /orgs (choose another path"},
		{"https://tools.acme.example/v1/ledger", "", "the server itself uses /v1"},
	}
	for _, c := range cases {
		var b BaseURL
		err := b.UnmarshalText([]byte(c.text))
		if c.want == "" && (err != nil || b.Path() != c.path) {
			t.Errorf("%q: path %q, %v, want %q", c.text, b.Path(), err, c.path)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}
