package dispatch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"

	"github.com/ledgerd/ledgerd/ledger"
)

// lookupTimeout is how long Check waits for DNS.
const lookupTimeout = 2 * time.Second

// azureHost is the public address at which Azure serves metadata to its virtual
// machines.
var azureHost = netip.MustParsePrefix("168.63.129.16/32")

// A Guard refuses addresses that are not public: private networks, loopback,
// link-local, cloud metadata and similar.
type Guard struct {
	guardian *ssrf.Guardian
	setting  string        // which allows networks, for messages
	resolver *net.Resolver // nil: the system's. Tests set it
}

// NewGuard returns a guard that permits public addresses and those in the allowed
// networks.
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
	guardian := ssrf.New(ssrf.WithAnyPort(), ssrf.WithDeniedV4Prefixes(azureHost), ssrf.WithAllowedV4Prefixes(v4...),
		ssrf.WithAllowedV6Prefixes(v6...))
	return &Guard{guardian: guardian, setting: "webhooks.allowed_networks"}
}

// For returns the guard with the name of another setting in its messages.
func (g *Guard) For(setting string) *Guard {
	other := *g
	other.setting = setting
	return &other
}

// A refusedError reports an address that is not public.
type refusedError struct{ addr, setting string }

func (e *refusedError) Error() string {
	return e.addr + " is not a public address (the server's setting " + e.setting + " can allow it)"
}

// notPublic returns the same message for a name. It omits the address: not every org
// admin may learn the addresses of internal names.
func notPublic(name, setting string) string {
	return name + " resolves to an address that is not public (the server's setting " + setting + " can allow it)"
}

// allow returns an error if an address must not be dialled. It treats an IPv4-mapped
// IPv6 address as the IPv4 address, and ignores zones.
func (g *Guard) allow(addr netip.Addr) error {
	addr = addr.Unmap().WithZone("")
	if err := g.guardian.SafeAddr(addr); err != nil {
		return &refusedError{addr.String(), g.setting}
	}
	return nil
}

// Control checks the address that is about to be dialled. It is the Control of a
// net.Dialer: it runs after name resolution, so changing a DNS record does not bypass it.
func (g *Guard) Control(network, address string, _ syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" {
		return fmt.Errorf("network %s not supported", network)
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("invalid address %s: %w", address, err)
	}
	return g.allow(to.Addr())
}

// Check returns an error about the field url if no delivery to the URL can succeed:
// its host is a refused address, or a name that resolves only to refused addresses. A
// name without addresses passes, since it may get some later. The address is checked
// again when it is dialled.
func (g *Guard) Check(ctx context.Context, rawURL string) error {
	return g.check(ctx, rawURL, false)
}

// checkStrictly checks a URL to which a proxy connects, so that the guard cannot check
// the dialled address. It refuses a name if any of its addresses is refused, or if the
// lookup fails. A name that does not exist passes, since the proxy may know it.
func (g *Guard) checkStrictly(ctx context.Context, rawURL string) error {
	return g.check(ctx, rawURL, true)
}

func (g *Guard) check(ctx context.Context, rawURL string, strictly bool) error {
	u, err := url.Parse(rawURL)
	if err != nil {
		return urlError("not a valid URL")
	}

	host := strings.TrimSuffix(u.Hostname(), ".")
	if host == "" || slices.Contains(strings.Split(host, "."), "") {
		return urlError("remove empty labels from the host: a dot at its start, or one of two dots in a row")
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		if err := g.allow(addr); err != nil {
			return urlError(err.Error())
		}
		return nil
	}

	// Some resolvers and proxies read such names as addresses.
	if strings.ContainsFunc(host, func(r rune) bool { return r > 0x7f }) {
		return urlError("write the host name in ASCII (xn--…)")
	}
	if endsInNumber(host) {
		return urlError("write the IPv4 address as four decimal numbers, such as 203.0.113.7")
	}

	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	addrs, err := g.addressesOf(ctx, host)
	if err != nil {
		if dns, ok := errors.AsType[*net.DNSError](err); !strictly || ok && dns.IsNotFound {
			return nil // the name may resolve later
		}
		return urlError(fmt.Sprintf("cannot resolve %s to check that its addresses are public: %s", host,
			lookupProblem(err)))
	}

	refused := 0
	for _, addr := range addrs {
		if g.allow(addr) != nil {
			refused++
		}
	}
	if refused == len(addrs) && refused > 0 || strictly && refused > 0 {
		return urlError(notPublic(host, g.setting))
	}
	return nil
}

// addressesOf looks up a name. localhost and the names below it are this machine, also where neither
// a hosts file nor DNS has them (RFC 6761, 6.3).
func (g *Guard) addressesOf(ctx context.Context, host string) ([]netip.Addr, error) {
	if last := host[strings.LastIndexByte(host, '.')+1:]; strings.EqualFold(last, "localhost") {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, nil
	}
	return g.lookup().LookupNetIP(ctx, "ip", host)
}

// lookupProblem returns why a lookup failed, without the addresses of name servers.
func lookupProblem(err error) string {
	dns, ok := errors.AsType[*net.DNSError](err)
	switch {
	case ok && dns.IsNotFound:
		return "no such host"
	case ok && dns.IsTimeout, errors.Is(err, context.DeadlineExceeded):
		return "DNS timeout"
	}
	return "DNS failure"
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

// endsInNumber reports whether a host's last label is a number, as in 2130706433,
// 127.1 and 0x7f.0.0.1. No DNS name ends like that.
func endsInNumber(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if hex, ok := strings.CutPrefix(strings.ToLower(last), "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}
