package doctor

import (
	"context"
	"crypto/tls"
	"maps"
	"net"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/parallel"
	"github.com/ledgerd/ledgerd/internal/service"
	"github.com/ledgerd/ledgerd/internal/terminal"
)

const (
	// maxListed is the maximum number of webhooks whose receivers are tried, of CAs, and of repos that
	// are listed.
	maxListed = 100
	// maxDials is how many of them are tried at a time.
	maxDials = 16
)

// addresses examines whether the server can listen.
func (e *examination) addresses() {
	const check = "address"
	if e.serving {
		e.add(check, OK, "%s is not tried, as a server runs", e.settings.Listen)
		return
	}
	var addresses []string
	if e.settings.Listen == config.ListenSystemd {
		e.add(check, OK, "systemd passes the socket")
	} else {
		addresses = append(addresses, e.settings.Listen)
	}
	if own := e.settings.Metrics.Listen; own != "" && own != config.MetricsOff {
		addresses = append(addresses, own)
	}

	for _, address := range addresses {
		listener, err := service.Listen(address)
		if err == nil {
			err = listener.Close()
		}
		if err != nil {
			e.add(check, Problem, "%v", err)
			continue
		}
		e.add(check, OK, "%s is free", address)
	}
}

// certificate examines the certificate in files.
func (e *examination) certificate() {
	const check = "certificate"
	files := e.settings.TLS
	if files.Cert == "" {
		return
	}
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		e.add(check, Problem, "tls.cert and tls.key cannot be used: %v", err)
		return
	}

	switch left := pair.Leaf.NotAfter.Sub(e.now); {
	case left <= 0:
		e.add(check, Problem, "%s expired at %s: replace it", files.Cert, pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
	case e.now.Before(pair.Leaf.NotBefore):
		e.add(check, Problem, "%s is valid from %s: is the clock right?", files.Cert,
			pair.Leaf.NotBefore.UTC().Format(time.RFC3339))
	case left < renewBefore:
		e.add(check, Warning, "%s expires at %s: replace it", files.Cert, pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
	default:
		e.add(check, OK, "valid until %s", pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
}

// renewBefore is how long before its end a certificate should have been replaced.
const renewBefore = 14 * 24 * time.Hour

// A receiver is where webhooks deliver to: a host with a port.
type receiver struct {
	scheme, host string // host has a port
}

// webhooks examines whether the receivers of webhooks can be reached. URLs are those of active
// webhooks; their paths are secret.
func (e *examination) webhooks(ctx context.Context, urls []string) {
	const check = "webhooks"
	if len(urls) == 0 {
		e.add(check, OK, "there is no active one")
		return
	}
	receivers := map[receiver]int64{} // with the number of webhooks
	if proxy := e.settings.Webhooks.Proxy.URL(); proxy != nil {
		receivers[receiverOf(proxy)] = int64(len(urls))
	} else {
		for _, text := range urls[:min(len(urls), maxListed)] {
			if u, err := url.Parse(text); err == nil {
				receivers[receiverOf(u)]++
			}
		}
	}

	var mu sync.Mutex
	failed := map[receiver]error{}
	parallel.Each(maxDials, slices.Collect(maps.Keys(receivers)), func(r receiver) {
		if err := e.reach(ctx, r); err != nil {
			mu.Lock()
			defer mu.Unlock()
			failed[r] = err
		}
	})
	for r, err := range failed {
		e.add(check, Problem, "%s://%s of %s cannot be reached: %v", r.scheme, r.host,
			terminal.Plural(receivers[r], "webhook"), err)
	}
	if len(failed) < len(receivers) {
		e.add(check, OK, "%d of %s can be reached", len(receivers)-len(failed),
			terminal.Plural(int64(len(receivers)), "receiver"))
	}
	if len(urls) > maxListed {
		e.add(check, Warning, "only the first %d were tried", maxListed)
	}
}

// receiverOf returns the receiver of a URL.
func receiverOf(u *url.URL) receiver {
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "socks5": "1080"}[u.Scheme]
	}
	if port == "" {
		port = "80"
	}
	return receiver{u.Scheme, net.JoinHostPort(u.Hostname(), port)}
}

// connectTimeout is how long connecting to a receiver may take. Deliveries have the same limit.
const connectTimeout = 5 * time.Second

// reach connects to a receiver, with TLS if it has that, and sends nothing. Without a proxy the
// guard of deliveries applies.
func (e *examination) reach(ctx context.Context, r receiver) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	dialer := &net.Dialer{Control: e.settings.Webhooks.Guard().Control}
	if e.settings.Webhooks.Proxy.URL() != nil {
		dialer.Control = nil // the operator chose it
	}

	dial := dialer.DialContext
	if r.scheme == "https" {
		dial = (&tls.Dialer{NetDialer: dialer}).DialContext
	}
	connection, err := dial(ctx, "tcp", r.host)
	if err != nil {
		return err
	}
	return connection.Close()
}
