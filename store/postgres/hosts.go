package postgres

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	connectTimeout = 5 * time.Second
	// hostPatience is how long a host may take to connect before the next one is tried, too.
	hostPatience = 500 * time.Millisecond
	// A connection on which nothing comes for so long, and whose probes are not answered, is lost.
	keepAliveIdle, keepAliveInterval, keepAliveCount = 5 * time.Second, 2 * time.Second, 3
	// sendTimeout is how long the network may take to acknowledge what was sent, before the
	// connection is lost.
	sendTimeout = 10 * time.Second
	// cancelPatience is how long a query that was cancelled may take to end, before its connection
	// is given up.
	cancelPatience = 2 * time.Second
)

// hosts connects to the hosts of a URL, of which one is the primary.
type hosts struct {
	configs []*pgx.ConnConfig // of one host each

	mu    sync.Mutex
	first int // the host to try first, because it was connected last
	links map[*link]bool
}

// A link is an open connection to a host.
type link struct {
	net.Conn
	hosts *hosts
	host  int
}

// Close implements net.Conn.
func (l *link) Close() error {
	l.hosts.mu.Lock()
	delete(l.hosts.links, l)
	l.hosts.mu.Unlock()
	return l.Conn.Close()
}

// newHosts returns the hosts of a configuration, each of which is accepted only if it is no standby,
// or as the URL says.
func newHosts(config *pgx.ConnConfig) *hosts {
	h := &hosts{links: make(map[*link]bool)}
	whole := config.Copy()
	if whole.ValidateConnect == nil {
		whole.ValidateConnect = isPrimary
	}
	for _, f := range slices.Concat([]*pgconn.FallbackConfig{{
		Host: whole.Host, Port: whole.Port, TLSConfig: whole.TLSConfig,
	}}, whole.Fallbacks) {
		if n := len(h.configs); n > 0 && h.configs[n-1].Host == f.Host && h.configs[n-1].Port == f.Port {
			h.configs[n-1].Fallbacks = append(h.configs[n-1].Fallbacks, f) // the same host without TLS
			continue
		}
		one := whole.Copy()
		one.Host, one.Port, one.TLSConfig, one.Fallbacks = f.Host, f.Port, f.TLSConfig, nil
		one.DialFunc = h.dialing(len(h.configs), whole.DialFunc)
		h.configs = append(h.configs, one)
	}
	return h
}

// isPrimary returns an error if a connection is to a standby. Unlike that of the driver, it runs no
// function of the same name that is planted in a database.
func isPrimary(ctx context.Context, c *pgconn.PgConn) error {
	results, err := c.Exec(ctx, "SELECT pg_catalog.pg_is_in_recovery()").ReadAll()
	if err != nil {
		return err
	}
	if string(results[0].Rows[0][0]) == "t" {
		return pgconn.ErrStandbyConnection
	}
	return nil
}

// anyHost returns what connects as the driver does: to the hosts in their order, and to standbys, too.
func anyHost(config *pgx.ConnConfig) *hosts { return &hosts{configs: []*pgx.ConnConfig{config}} }

// dialing returns dial for a host. It keeps the open connections.
func (h *hosts) dialing(host int, dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		l := &link{c, h, host}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.links[l] = true
		return l, nil
	}
}

// An attempt is the result of connecting to a host.
type attempt struct {
	host int
	conn *pgx.Conn
	err  error
}

// connect connects to the first host that is ready for it, and returns which one that is. If a host
// fails, or takes long, the next one is tried, too. change, if not nil, changes the configuration.
func (h *hosts) connect(ctx context.Context, change func(*pgx.ConnConfig)) (c *pgx.Conn, host int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan attempt, len(h.configs))
	var running sync.WaitGroup
	start := func(host int) {
		config := h.configs[host].Copy()
		if change != nil {
			change(config)
		}
		running.Go(func() {
			conn, err := pgx.ConnectConfig(ctx, config)
			ended <- attempt{host, conn, err}
		})
	}
	defer func() {
		cancel()
		running.Wait()
		for len(ended) > 0 {
			hangUp((<-ended).conn) // it was too late
		}
	}()

	waiting := h.order()
	var errs []error
	for len(errs) < len(h.configs) {
		var patience <-chan time.Time
		if len(waiting) > 0 {
			start(waiting[0])
			waiting = waiting[1:]
			patience = time.After(hostPatience)
		}
		select {
		case <-patience:
		case a := <-ended:
			if a.err == nil {
				h.prefer(a.host)
				return a.conn, a.host, nil
			}
			errs = append(errs, a.err)
		}
	}
	return nil, 0, errors.Join(errs...)
}

// order returns the hosts in the order in which to try them.
func (h *hosts) order() []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	order := []int{h.first}
	for host := range h.configs {
		if host != h.first {
			order = append(order, host)
		}
	}
	return order
}

func (h *hosts) prefer(host int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.first = host
}

// leave ends all connections to other hosts than the new primary. What waits for an answer on them
// would wait for long.
func (h *hosts) leave(primary int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.links {
		if l.host != primary {
			_ = l.Conn.Close() // it may be closed already
		}
	}
}

// hangUp closes a connection, which may be nil.
func hangUp(c *pgx.Conn) {
	if c == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), cancelPatience)
	defer cancel()
	_ = c.Close(ctx) // nothing was written on it
}
