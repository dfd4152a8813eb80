package text

import (
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
)

// ASCIIHost returns a URL with the host as DNS has it: https://bücher.example is
// https://xn--bcher-kva.example. It returns other text as it is.
func ASCIIHost(link string) (string, error) {
	u, err := url.Parse(link)
	if err != nil || !strings.ContainsFunc(u.Hostname(), notASCII) {
		return link, nil
	}
	host, err := idna.Lookup.ToASCII(u.Hostname())
	if err != nil {
		return link, err
	}
	u.Host = host + strings.TrimPrefix(u.Host, u.Hostname())
	return u.String(), nil
}

func notASCII(r rune) bool { return r > unicode.MaxASCII }

// HasEmptyLabel reports whether a host starts with a dot or has two dots in a row, as in
// 127.0.0.1.., which some resolvers read as an address. One dot at the end is valid.
func HasEmptyLabel(host string) bool {
	return strings.HasPrefix(host, ".") || strings.Contains(host, "..")
}

// IsPort reports whether s is a port number, or empty for the scheme's default.
func IsPort(s string) bool {
	port, err := strconv.ParseUint(s, 10, 16)
	return s == "" || err == nil && port > 0
}
