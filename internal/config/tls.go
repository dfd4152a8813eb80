package config

import (
	"fmt"
	"net/url"
	"regexp"
)

// TLS holds the settings of encrypted connections. If all are empty, the server speaks plain
// HTTP.
type TLS struct {
	// Cert and Key are PEM files: a certificate with its chain, and its key.
	Cert string `mapstructure:"cert" yaml:"cert"`
	Key  string `mapstructure:"key" yaml:"key"`
	// Domains are the names for which certificates are fetched by ACME (RFC 8555).
	Domains domains `mapstructure:"domains" yaml:"domains,flow"`
	// Directory is the URL of the ACME directory. If it is empty, it is that of Let's Encrypt.
	Directory string `mapstructure:"directory" yaml:"directory"`
	// Folder has the ACME account and certificates. If it is empty, it is next to the database;
	// see [Settings.ACMEFolder].
	Folder string `mapstructure:"folder" yaml:"folder"`
}

// Enabled reports whether connections are encrypted.
func (t TLS) Enabled() bool { return t.Cert != "" || len(t.Domains) > 0 }

// check calls invalid for each setting that is invalid.
func (t TLS) check(invalid func(key, format string, args ...any)) {
	if t.Cert != "" && t.Key == "" {
		invalid("tls.key", "empty: name the file with the key of tls.cert")
	}
	if t.Key != "" && t.Cert == "" {
		invalid("tls.cert", "empty: name the file with the certificate of tls.key")
	}
	if t.Cert != "" && len(t.Domains) > 0 {
		invalid("tls.domains", "set together with tls.cert: use one of the two")
	}

	if len(t.Domains) == 0 && (t.Directory != "" || t.Folder != "") {
		invalid("tls.domains", "empty: name the domains for which ACME fetches certificates")
	}
	if u, err := url.Parse(t.Directory); t.Directory != "" && (err != nil || u.Scheme != "https" || u.Host == "") {
		invalid("tls.directory", "%q is not an HTTPS URL (use that of an ACME directory)", t.Directory)
	}
}

// maxDomains is the maximum number of names for which certificates are fetched.
const maxDomains = 100

// domains is a list of DNS names.
type domains []string

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *domains) UnmarshalText(text []byte) error {
	*d = nil
	for word := range words(string(text)) {
		if len(word) > 253 || !dnsName().MatchString(word) {
			return fmt.Errorf("%q is not a DNS name in lower case (use e.g. ledger.example.com)", word)
		}
		*d = append(*d, word)
	}
	if len(*d) > maxDomains {
		return fmt.Errorf("%d domains are too many (use at most %d)", len(*d), maxDomains)
	}
	return nil
}

// dnsName matches a name of letters, digits and hyphens (RFC 1123, 2.1).
func dnsName() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)
}
