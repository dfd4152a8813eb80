package config

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// A duration is a duration that may be given in weeks and days.
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

// A schedule is how long to wait before each try after the first. As text it
// is durations with commas between them.
type schedule []duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *schedule) UnmarshalText(text []byte) error {
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

// Durations returns the waiting times.
func (s schedule) Durations() []time.Duration {
	list := make([]time.Duration, len(s))
	for i, d := range s {
		list[i] = time.Duration(d)
	}
	return list
}

// Networks are ranges of addresses. As text they are CIDRs with commas between
// them.
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
		return network, fmt.Errorf("%q is not a network such as 10.0.0.0/8 or, for one address, 192.0.2.7/32", text)
	}
	if network != network.Masked() {
		return network, fmt.Errorf("%s is an address inside a network: write %s for the network, or %s for the address alone",
			network, network.Masked(), netip.PrefixFrom(network.Addr(), network.Addr().BitLen()))
	}
	return network, nil
}

// words yields what stands between commas.
func words(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for word := range strings.SplitSeq(text, ",") {
			if word = strings.TrimSpace(word); word != "" && !yield(word) {
				return
			}
		}
	}
}

// A proxyURL is the URL of an HTTP proxy, which may hold a password; empty for
// none.
type proxyURL string

// MarshalText returns it without the password: what is shown is no secret.
func (p proxyURL) MarshalText() ([]byte, error) {
	if u := p.URL(); u != nil {
		return []byte(u.Redacted()), nil
	}
	return nil, nil
}

// UnmarshalText implements encoding.TextUnmarshaler. Its errors do not repeat
// the text.
func (p *proxyURL) UnmarshalText(text []byte) error {
	*p = proxyURL(text)
	if u := p.URL(); *p != "" && (u == nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "") {
		return errors.New("this is not the URL of a proxy such as http://proxy.example:3128")
	}
	return nil
}

// URL returns the proxy, nil if none is set.
func (p proxyURL) URL() *url.URL {
	u, err := url.Parse(string(p))
	if p == "" || err != nil {
		return nil
	}
	return u
}

const day = 24 * time.Hour
