package cmd

import (
	"encoding"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/webhook"
)

// webhookSettings say where webhooks may post to, and how they do.
type webhookSettings struct {
	AllowedNetworks networks `mapstructure:"allowed_networks" yaml:"allowed_networks,flow"`
	Schedule        schedule `mapstructure:"schedule" yaml:"schedule,flow"`
	Timeout         span     `mapstructure:"timeout" yaml:"timeout"`
	ConnectTimeout  span     `mapstructure:"connect_timeout" yaml:"connect_timeout"`
	InFlight        int      `mapstructure:"in_flight" yaml:"in_flight"`
	TotalInFlight   int      `mapstructure:"total_in_flight" yaml:"total_in_flight"`
	DisableAfter    span     `mapstructure:"disable_after" yaml:"disable_after"`
	Keep            span     `mapstructure:"keep" yaml:"keep"`
	Proxy           proxyURL `mapstructure:"proxy" yaml:"proxy"`
}

const day = 24 * time.Hour

func defaultWebhooks() webhookSettings {
	var retries schedule
	for _, d := range webhook.DefaultSchedule() {
		retries = append(retries, span(d))
	}
	return webhookSettings{
		Schedule:       retries,
		Timeout:        span(15 * time.Second),
		ConnectTimeout: span(5 * time.Second),
		InFlight:       8,
		TotalInFlight:  webhook.DefaultTotalInFlight,
		DisableAfter:   span(5 * day),
		Keep:           span(store.DefaultKeepDeliveries),
	}
}

// listKeys are the keys that take a list.
func listKeys() []string { return []string{"webhooks.allowed_networks", "webhooks.schedule"} }

// A span is a duration that may be given in weeks and days.
type span time.Duration

func (d span) String() string {
	if std := time.Duration(d); std >= 2*day && std%day == 0 {
		return fmt.Sprintf("%dd", std/day)
	}
	return ledger.Duration(d).String()
}

// MarshalText implements encoding.TextMarshaler.
func (d span) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *span) UnmarshalText(text []byte) error {
	parsed, err := ledger.ParseDuration(string(text))
	*d = span(parsed)
	return err
}

// A schedule is how long to wait before each try after the first. As text it
// is durations with commas between them.
type schedule []span

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *schedule) UnmarshalText(text []byte) error {
	*s = nil
	for word := range words(string(text)) {
		var d span
		if err := d.UnmarshalText([]byte(word)); err != nil {
			return err
		}
		*s = append(*s, d)
	}
	return nil
}

func (s schedule) durations() []time.Duration {
	list := make([]time.Duration, len(s))
	for i, d := range s {
		list[i] = time.Duration(d)
	}
	return list
}

// networks are ranges of addresses. As text they are CIDRs with commas between
// them.
type networks []netip.Prefix

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *networks) UnmarshalText(text []byte) error {
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
	if u := p.parsed(); u != nil {
		return []byte(u.Redacted()), nil
	}
	return nil, nil
}

// UnmarshalText implements encoding.TextUnmarshaler. Its errors do not repeat
// the text.
func (p *proxyURL) UnmarshalText(text []byte) error {
	*p = proxyURL(text)
	if u := p.parsed(); *p != "" && (u == nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "") {
		return errors.New("this is not the URL of a proxy such as http://proxy.example:3128")
	}
	return nil
}

// parsed returns the URL, nil where there is none.
func (p proxyURL) parsed() *url.URL {
	u, err := url.Parse(string(p))
	if p == "" || err != nil {
		return nil
	}
	return u
}

// guard returns what refuses to post to networks that are not allowed.
func (s webhookSettings) guard() *webhook.Guard { return webhook.NewGuard(s.AllowedNetworks) }

func (s webhookSettings) check(wrong func(key, format string, args ...any)) {
	within := func(key string, d, least, most span) bool {
		if d < least || d > most {
			wrong("webhooks."+key, "%v is not between %v and %v", d, least, most)
			return false
		}
		return true
	}
	if len(s.Schedule) == 0 {
		wrong("webhooks.schedule", "it must name at least one duration such as 5s")
	}
	least := span(day) // that a delivery is kept
	for _, d := range s.Schedule {
		if within("schedule", d, span(time.Second), span(30*day)) {
			least += d
		}
	}
	timeout := within("timeout", s.Timeout, span(time.Second), span(2*time.Minute))
	if within("connect_timeout", s.ConnectTimeout, span(100*time.Millisecond), span(2*time.Minute)) && timeout && s.ConnectTimeout > s.Timeout {
		wrong("webhooks.connect_timeout", "%v is longer than webhooks.timeout, %v, of which it is a part", s.ConnectTimeout, s.Timeout)
	}
	if s.InFlight < 1 || s.InFlight > 64 {
		wrong("webhooks.in_flight", "%d is not between 1 and 64", s.InFlight)
	}
	if s.TotalInFlight < 1 || s.TotalInFlight > 65536 {
		wrong("webhooks.total_in_flight", "%d is not between 1 and 65536", s.TotalInFlight)
	}
	within("disable_after", s.DisableAfter, span(time.Minute), span(365*day))
	if within("keep", s.Keep, span(day), span(3650*day)) && s.Keep < least {
		wrong("webhooks.keep", "%v is too short: with this webhooks.schedule a delivery may be tried for nearly %v", s.Keep, least)
	}
}

// addWebhookFlags defines the flags of the settings of webhooks.
func addWebhookFlags(flags *pflag.FlagSet) {
	d := defaultWebhooks()
	textVar := func(name, kind, text, usage string, parse func(string) (string, error)) {
		flags.Var(&parsed[string]{value: new(string), text: text, kind: kind, parse: parse}, "webhooks-"+name,
			fmt.Sprintf("%s (%s)", usage, variableOf("webhooks."+strings.ReplaceAll(name, "-", "_"))))
	}
	var times []string
	for _, t := range d.Schedule {
		times = append(times, t.String())
	}
	textVar("allowed-networks", "CIDRS", "", "private networks that webhooks may post to, with commas between them", readsAs[networks])
	textVar("schedule", "DURATIONS", strings.Join(times, ","), "how long to wait before each try after the first", readsAs[schedule])
	textVar("timeout", "DURATION", d.Timeout.String(), "how long a receiver may take to answer", readsAs[span])
	textVar("connect-timeout", "DURATION", d.ConnectTimeout.String(), "how long connecting to a receiver may take", readsAs[span])
	flags.Int("webhooks-in-flight", d.InFlight, "how many requests to one webhook run at once (LEDGERD_WEBHOOKS_IN_FLIGHT)")
	flags.Int("webhooks-total-in-flight", d.TotalInFlight, "how many requests to all webhooks run at once (LEDGERD_WEBHOOKS_TOTAL_IN_FLIGHT)")
	textVar("disable-after", "DURATION", d.DisableAfter.String(), "how long a webhook may only fail before it is disabled", readsAs[span])
	textVar("keep", "DURATION", d.Keep.String(), "how long deliveries are kept to be looked at", readsAs[span])
	flags.String("webhooks-proxy", "", "`URL` of an HTTP proxy through which webhooks post (LEDGERD_WEBHOOKS_PROXY)")
}

// readsAs returns the text of a flag if it is that of a T.
func readsAs[T any, P interface {
	*T
	encoding.TextUnmarshaler
}](text string) (string, error) {
	return text, P(new(T)).UnmarshalText([]byte(text))
}
