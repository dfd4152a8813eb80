// Package network has a proxy that makes the network to a database slower.
package network

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// A Slow is a proxy before a PostgreSQL server. It passes on each message half of its delay
// later, so that a round trip takes the delay longer.
type Slow struct {
	listener         net.Listener
	network, address string // of the server
	delay            time.Duration

	mu      sync.Mutex
	conns   []net.Conn // nil after close
	passing sync.WaitGroup
}

// NewSlow starts a proxy before the server of a database.
func NewSlow(database string, delay time.Duration) (*Slow, error) {
	config, err := pgconn.ParseConfig(database)
	if err != nil {
		return nil, fmt.Errorf("read the URL of the database: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	n := &Slow{listener: listener, delay: delay, conns: []net.Conn{}}
	n.network, n.address = pgconn.NetworkAddress(config.Host, config.Port)
	n.passing.Go(n.accept)
	return n, nil
}

// Address is the address of the proxy.
func (n *Slow) Address() string { return n.listener.Addr().String() }

// Behind returns the URL of a database behind a proxy with this address.
func Behind(database, address string) (string, error) {
	u, err := url.Parse(database)
	if err != nil {
		return "", errors.New("the URL of the database is not valid")
	}
	query := u.Query()
	query.Del("host")
	query.Del("port")
	u.Host, u.RawQuery = address, query.Encode()
	return u.String(), nil
}

// accept passes on all connections, until the listener is closed.
func (n *Slow) accept() {
	for {
		client, err := n.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial(n.network, n.address)
		if err != nil || !n.add(client, server) {
			client.Close()
			continue
		}
		n.passing.Go(func() { n.pass(client, server) })
		n.passing.Go(func() { n.pass(server, client) })
	}
}

// add notes the two ends of a connection, unless the proxy is closed.
func (n *Slow) add(client, server net.Conn) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.conns == nil {
		server.Close()
		return false
	}
	n.conns = append(n.conns, client, server)
	return true
}

// A parcel is a part of a connection's bytes, on its way.
type parcel struct {
	bytes []byte
	due   time.Time
}

// maxParcels is how many parcels of a direction are on their way at most.
const maxParcels = 1000

// pass passes on what it reads from one end to the other, and closes both when one is closed.
func (n *Slow) pass(from, to net.Conn) {
	parcels := make(chan parcel, maxParcels)
	n.passing.Go(func() {
		defer to.Close()
		for p := range parcels {
			pauseUntil(p.due)
			if _, err := to.Write(p.bytes); err != nil {
				from.Close() // ends the reads below
			}
		}
	})

	defer close(parcels)
	for {
		bytes := make([]byte, 16<<10)
		count, err := from.Read(bytes)
		if count > 0 {
			parcels <- parcel{bytes[:count], time.Now().Add(n.delay / 2)}
		}
		if err != nil {
			from.Close()
			return
		}
	}
}

// Close ends all connections.
func (n *Slow) Close() error {
	err := n.listener.Close()
	n.mu.Lock()
	for _, c := range n.conns {
		c.Close()
	}
	n.conns = nil
	n.mu.Unlock()
	n.passing.Wait()
	return err
}
