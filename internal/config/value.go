package config

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// A duration is a duration whose text form may use days and weeks.
type duration time.Duration

func (d duration) String() string {
	if std := time.Duration(d); std >= 2*day && std%day == 0 {
		return fmt.Sprintf("%dd", std/day)
	}
	return ledger.Duration(d).String()
}

// MarshalText implements encoding.TextMarshaler.
func (d duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *duration) UnmarshalText(text []byte) error {
	parsed, err := ledger.ParseDuration(string(text))
	*d = duration(parsed)
	return err
}

// A retrySchedule holds the wait before each retry. Its text form is a
// comma-separated list of durations.
type retrySchedule []duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *retrySchedule) UnmarshalText(text []byte) error {
	*s = nil
	for word := range words(string(text)) {
		var d duration
		if err := d.UnmarshalText([]byte(word)); err != nil {
			return err
		}
		*s = append(*s, d)
	}
	return nil
}

// Durations returns the schedule as a slice of durations.
func (s retrySchedule) Durations() []time.Duration {
	list := make([]time.Duration, len(s))
	for i, d := range s {
		list[i] = time.Duration(d)
	}
	return list
}

// Networks are ranges of IP addresses. Their text form is a comma-separated list of
// CIDRs.
type Networks []netip.Prefix

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *Networks) UnmarshalText(text []byte) error {
	*n = nil
	for word := range words(string(text)) {
		network, err := parseNetwork(word)
		if err != nil {
			return err
		}
		*n = append(*n, network)
	}
	return nil
}

func parseNetwork(text string) (netip.Prefix, error) {
	network, err := netip.ParsePrefix(text)
	if err != nil {
		return network, fmt.Errorf("%q is not a network (use e.g. 10.0.0.0/8, or 192.0.2.7/32 for one address)", text)
	}
	if network != network.Masked() {
		return network, fmt.Errorf("%s is not a network (use %s for the network, or %s for the single address)",
			network, network.Masked(), netip.PrefixFrom(network.Addr(), network.Addr().BitLen()))
	}
	return network, nil
}

// words yields the comma-separated words of a text that are not empty.
func words(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for word := range strings.SplitSeq(text, ",") {
			if word = strings.TrimSpace(word); word != "" && !yield(word) {
				return
			}
		}
	}
}

// A BaseURL is the URL at which clients reach the server, without a slash at its end, or
// empty. Its path is the base path, below which the server has everything.
type BaseURL string

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *BaseURL) UnmarshalText(text []byte) error {
	*b = BaseURL(strings.TrimSuffix(string(text), "/"))
	if len(text) == 0 {
		return nil
	}
	if b.URL() == nil {
		return fmt.Errorf("%q is not a base URL (use e.g. https://ledger.example.com or https://example.com/ledger)", text)
	}
	if err := checkBase(b.Path()); err != nil {
		return fmt.Errorf("%q has a path that cannot be served: %w", text, err)
	}
	return nil
}

// URL returns the URL, or nil if it is empty.
func (b BaseURL) URL() *url.URL {
	u, err := url.Parse(string(b))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" || strings.ContainsAny(string(b), " +#?") {
		return nil
	}
	return u
}

// Path returns the base path, such as /ledger, without a slash at its end. It is empty if
// the server has the root of its host.
func (b BaseURL) Path() string {
	if u := b.URL(); u != nil {
		return u.EscapedPath()
	}
	return ""
}

// baseSegment matches the segments of a base path. They look the same in a URL, a cookie and
// a pattern of net/http, so nothing has to be escaped.
var baseSegment = regexp.MustCompile(`^[A-Za-z0-9._~-]+$`)

// checkBase returns an error if a server cannot have a base path, or if a proxy may confuse it
// with another. A path that begins like one of the server's own is ambiguous: /orgs/acme may be
// the page, or what a proxy left of it.
func checkBase(path string) error {
	if path == "" {
		return nil
	}
	segments := strings.Split(path[1:], "/")
	for _, s := range segments {
		switch {
		case s == "":
			return errors.New("it has an empty segment (use single slashes)")
		case s == ".", s == "..":
			return fmt.Errorf("it has the segment %s (write the path that it leads to)", s)
		case !baseSegment.MatchString(s):
			return fmt.Errorf("%q has other characters than letters, digits, -, ., _ and ~ (choose another path)", s)
		}
	}
	switch first := segments[0]; first {
	case "v1", "orgs", "login", "logout", "setup", "static", "healthz", "readyz", "metrics":
		return fmt.Errorf("the server itself uses /%s (choose another path, such as /ledger)", first)
	}
	return nil
}

// A proxyURL is the URL of an HTTP proxy, or empty. It may contain a password.
type proxyURL string

// MarshalText returns the URL without the password, so that it can be shown.
func (p proxyURL) MarshalText() ([]byte, error) {
	if u := p.URL(); u != nil {
		return []byte(u.Redacted()), nil
	}
	return nil, nil
}

// UnmarshalText implements encoding.TextUnmarshaler. Its errors do not contain the
// text, which may hold a password.
func (p *proxyURL) UnmarshalText(text []byte) error {
	*p = proxyURL(text)
	if u := p.URL(); *p != "" && (u == nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "") {
		return errors.New("not a proxy URL (use e.g. http://proxy.example:3128)")
	}
	return nil
}

// URL returns the URL of the proxy, or nil if none is set.
func (p proxyURL) URL() *url.URL {
	u, err := url.Parse(string(p))
	if p == "" || err != nil {
		return nil
	}
	return u
}

const day = 24 * time.Hour
