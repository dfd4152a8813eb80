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
	"github.com/ledgerd/ledgerd/internal/terminal"
)

const (
	// maxWebhooks is the maximum number of webhooks whose receivers are tried.
	maxWebhooks = 100
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
	addresses := []string{e.settings.Listen}
	if own := e.settings.Metrics.Listen; own != "" && own != config.MetricsOff {
		addresses = append(addresses, own)
	}

	for _, address := range addresses {
		listener, err := net.Listen("tcp", address)
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
		for _, text := range urls[:min(len(urls), maxWebhooks)] {
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
	if len(urls) > maxWebhooks {
		e.add(check, Warning, "only the first %d were tried", maxWebhooks)
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

// reach connects to a receiver, with TLS if it has that, and sends nothing. Without a proxy the
// guard of deliveries applies.
func (e *examination) reach(ctx context.Context, r receiver) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(e.settings.Webhooks.ConnectTimeout))
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
