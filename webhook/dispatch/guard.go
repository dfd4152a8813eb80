package dispatch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"

	"github.com/ledgerd/ledgerd/ledger"
)

// lookupTimeout is how long Check waits for the addresses of a name.
const lookupTimeout = 2 * time.Second

// azureHost is a public address at which Azure gives metadata to its virtual
// machines.
var azureHost = netip.MustParsePrefix("168.63.129.16/32")

// A Guard keeps deliveries away from addresses that are not public: private
// networks, loopback, link-local, cloud metadata and their like.
type Guard struct {
	guardian *ssrf.Guardian
	resolver *net.Resolver // nil: the system's; set by tests
}

// NewGuard returns a guard that lets through public addresses, and those in
// the allowed networks.
func NewGuard(allowed []netip.Prefix) *Guard {
	var v4, v6 []netip.Prefix
	for _, p := range allowed {
		switch addr := p.Addr(); {
		case addr.Is4():
			v4 = append(v4, p.Masked())
		case addr.Is4In6() && p.Bits() >= 96:
			v4 = append(v4, netip.PrefixFrom(addr.Unmap(), p.Bits()-96).Masked())
		default:
			v6 = append(v6, p.Masked())
		}
	}
	return &Guard{guardian: ssrf.New(ssrf.WithAnyPort(), ssrf.WithDeniedV4Prefixes(azureHost),
		ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...))}
}

// A refusedError is the guard's answer to an address that is not public.
type refusedError struct{ addr string }

func (e *refusedError) Error() string {
	return e.addr + " is not a public address, and not in a network that the setting webhooks.allowed_networks names"
}

// leadsAway tells the same of a name. It leaves out the address: not everybody
// who may make webhooks need know the addresses of internal names.
func leadsAway(name string) string {
	return name + " leads to an address that is not public; webhooks.allowed_networks in the server's configuration " +
		"can allow it"
}

// allow reports whether an address may be dialled. One that is IPv4 within
// IPv6 is what it stands for, and a zone changes nothing.
func (g *Guard) allow(addr netip.Addr) error {
	addr = addr.Unmap().WithZone("")
	if err := g.guardian.SafeAddr(addr); err != nil {
		return &refusedError{addr.String()}
	}
	return nil
}

// control is called with the very address that is about to be dialled, after
// all lookups: a name that changes its answer gains nothing.
func (g *Guard) control(network, address string, _ syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" {
		return fmt.Errorf("%s is not a network for webhooks", network)
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%s is not an address: %w", address, err)
	}
	return g.allow(to.Addr())
}

// Check reports, as an error about the field url, that a URL can never be
// delivered to: that its host is an address which is refused, or a name all of
// whose addresses are. A name without addresses passes, for it may get some:
// what counts is what is dialled.
func (g *Guard) Check(ctx context.Context, rawURL string) error {
	return g.check(ctx, rawURL, false)
}

// checkStrictly is for targets that a proxy dials, which the guard does not
// see: it takes any of the addresses, so that none may be refused, and knows
// them although our DNS does not answer. Only a name that our DNS denies
// passes: others may be the proxy's to know.
func (g *Guard) checkStrictly(ctx context.Context, rawURL string) error {
	return g.check(ctx, rawURL, true)
}

func (g *Guard) check(ctx context.Context, rawURL string, strictly bool) error {
	u, err := url.Parse(rawURL)
	if err != nil {
		return urlError("this is not a URL")
	}
	host := strings.TrimSuffix(u.Hostname(), ".")
	if addr, err := netip.ParseAddr(host); err == nil {
		if err := g.allow(addr); err != nil {
			return urlError(err.Error())
		}
		return nil
	}
	// What follows means an address to some resolvers and proxies.
	if strings.ContainsFunc(host, func(r rune) bool { return r > 0x7f }) {
		return urlError("write the host's name in its ASCII form (xn--…)")
	}
	if endsInNumber(host) {
		return urlError("write the host's address as four decimal numbers, such as 203.0.113.7")
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	addrs, err := g.lookup().LookupNetIP(ctx, "ip", host)
	if err != nil {
		if dns, ok := errors.AsType[*net.DNSError](err); !strictly || ok && dns.IsNotFound {
			return nil // it may be in the DNS later
		}
		return urlError(fmt.Sprintf("the addresses of %s cannot be looked up, so that nobody knows whether they are "+
			"public: %s", host, lookupProblem(err)))
	}
	refused := 0
	for _, addr := range addrs {
		if g.allow(addr) != nil {
			refused++
		}
	}
	if refused == len(addrs) && refused > 0 || strictly && refused > 0 {
		return urlError(leadsAway(host))
	}
	return nil
}

// lookupProblem tells why a name was not found, without the addresses of name
// servers.
func lookupProblem(err error) string {
	dns, ok := errors.AsType[*net.DNSError](err)
	switch {
	case ok && dns.IsNotFound:
		return "no such host"
	case ok && dns.IsTimeout, errors.Is(err, context.DeadlineExceeded):
		return "the DNS does not answer"
	}
	return "the DNS fails"
}

func (g *Guard) lookup() *net.Resolver {
	if g.resolver != nil {
		return g.resolver
	}
	return net.DefaultResolver
}

func urlError(problem string) error {
	return ledger.FieldErrorf(ledger.CodeInvalidField, "url", "%s", problem)
}

// endsInNumber tells whether a host's last label is a number, as in
// 2130706433, 127.1 and 0x7f.0.0.1, which no name in the DNS has.
func endsInNumber(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if hex, ok := strings.CutPrefix(strings.ToLower(last), "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}
