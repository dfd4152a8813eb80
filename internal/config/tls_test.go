package config

import (
	"strings"
	"testing"
)

func TestConnectionsAreChecked(t *testing.T) {
	cases := []struct {
		name string
		set  func(s *Settings)
		want string // a part of the error; empty if the settings are valid
	}{
		{"host and port", func(s *Settings) { s.Listen = "[::1]:80" }, ""},
		{"a port alone", func(s *Settings) { s.Listen = ":80" }, ""},
		{"no port", func(s *Settings) { s.Listen = "localhost" }, "listen: \"localhost\" (use host:port"},
		{"a socket of systemd", func(s *Settings) { s.Listen = "systemd" }, ""},
		{"a unix socket", func(s *Settings) { s.Listen = "unix:/run/ledgerd.sock" }, ""},
		{"a unix socket with a relative path", func(s *Settings) { s.Listen = "unix:ledgerd.sock" },
			"listen: \"unix:ledgerd.sock\" (use unix: and an absolute path"},

		{"files", func(s *Settings) { s.TLS.Cert, s.TLS.Key = "c", "k" }, ""},
		{"a certificate alone", func(s *Settings) { s.TLS.Cert = "c" }, "tls.key: empty"},
		{"a key alone", func(s *Settings) { s.TLS.Key = "k" }, "tls.cert: empty"},
		{"ACME", func(s *Settings) { s.TLS.Domains = domains{"a.example"} }, ""},
		{"ACME with a directory", func(s *Settings) {
			s.TLS.Domains, s.TLS.Directory = domains{"a.example"}, "https://acme.example/dir"
		}, ""},
		{"ACME and files", func(s *Settings) {
			s.TLS.Domains, s.TLS.Cert, s.TLS.Key = domains{"a.example"}, "c", "k"
		}, "tls.domains: set together with tls.cert"},
		{"a folder without domains", func(s *Settings) { s.TLS.Folder = "acme" }, "tls.domains: empty"},
		{"a directory without domains", func(s *Settings) { s.TLS.Directory = "https://acme.example" }, "tls.domains: empty"},
		{"a directory without TLS", func(s *Settings) {
			s.TLS.Domains, s.TLS.Directory = domains{"a.example"}, "http://acme.example/dir"
		}, "tls.directory: \"http://acme.example/dir\" is not an HTTPS URL"},
		{"a directory without a host", func(s *Settings) {
			s.TLS.Domains, s.TLS.Directory = domains{"a.example"}, "https:///dir"
		}, "tls.directory"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := Default()
			c.set(&s)
			var got []string
			for key, problem := range s.check() {
				got = append(got, key+": "+problem)
			}
			if text := strings.Join(got, "\n"); !strings.Contains(text, c.want) || c.want == "" && text != "" {
				t.Errorf("problems %q, want %q", text, c.want)
			}
		})
	}
}

func TestDomains(t *testing.T) {
	cases := []struct {
		text, want string // want is a part of the error; empty if the text is valid
	}{
		{"a.example,b-2.example", ""},
		{strings.Repeat("a.example,", maxDomains), ""},
		{strings.Repeat("a.example,", maxDomains+1), "101 domains are too many"},
		{"A.example", "not a DNS name in lower case"},
		{"*.example", "not a DNS name"},
		{"-a.example", "not a DNS name"},
		{"a-.example", "not a DNS name"},
		{"a..example", "not a DNS name"},
		{strings.Repeat("a", 64) + ".example", "not a DNS name"},
		{strings.Repeat(strings.Repeat("a", 63)+".", 4) + "b", "not a DNS name"},
	}
	for _, c := range cases {
		err := new(domains).UnmarshalText([]byte(c.text))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: error %v, want %q", c.text, err, c.want)
		}
	}
}
