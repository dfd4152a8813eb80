package engine

import (
	"context"
	"errors"
	"sync"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A Pool holds the reading connections of one lane. While reads wait for a
// connection, orgs take turns.
type Pool struct {
	closing chan struct{}  // closed when the database is closed
	busy    sync.WaitGroup // counts the connections in use

	mu      sync.Mutex
	closed  bool
	idle    []*sqldb.Conn // the last one was used last
	used    int
	rows    uint64        // that reads have returned
	paused  bool          // no connection is given out
	quiet   chan struct{} // closed when no connection is in use, while paused
	waiting *turnQueue[chan *sqldb.Conn]
}

// NewPool returns a pool without connections. Closing the channel ends what waits for one.
func NewPool(closing chan struct{}) *Pool {
	return &Pool{closing: closing, waiting: newTurnQueue[chan *sqldb.Conn]()}
}

// Take waits for a connection. The caller must put it back.
func (p *Pool) Take(ctx context.Context, org string) (*sqldb.Conn, error) {
	c, turn, err := p.enter(org)
	if c != nil || err != nil {
		return c, err
	}

	err = sqldb.ErrClosed
	select {
	case c := <-turn:
		return c, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-p.closing:
	}

	p.mu.Lock()
	waits := p.waiting.remove(org, turn)
	p.mu.Unlock()
	if !waits { // its turn came in the meantime
		p.Put(<-turn)
	}
	return nil, err
}

// Add adds a connection, which the pool then owns.
func (p *Pool) Add(c *sqldb.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, c)
}

// enter returns an idle connection. If all are in use, it returns the channel that
// receives a connection when it is the caller's turn.
func (p *Pool) enter(org string) (*sqldb.Conn, chan *sqldb.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, sqldb.ErrClosed
	}
	if len(p.idle) > 0 && !p.paused {
		return p.handOut(), nil, nil
	}
	turn := make(chan *sqldb.Conn, 1)
	p.waiting.push(org, turn)
	return nil, turn, nil
}

// handOut returns the idle connection that was used last: it is open, and its caches are warm.
func (p *Pool) handOut() *sqldb.Conn {
	last := len(p.idle) - 1
	c := p.idle[last]
	p.idle = p.idle[:last]
	p.busy.Add(1)
	p.used++
	return c
}

// Put returns a connection, which goes to the next read that waits.
func (p *Pool) Put(c *sqldb.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rows += c.TakeRows()
	if !p.paused {
		if turn, ok := p.waiting.pop(); ok {
			turn <- c
			return
		}
	}
	p.idle = append(p.idle, c)
	p.used--
	p.busy.Done()
	if p.paused && p.used == 0 {
		close(p.quiet)
	}
}

// Pause stops the pool from handing out connections until Resume is called. It returns
// a channel that is closed when none is in use.
func (p *Pool) Pause() (quiet <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused, p.quiet = true, make(chan struct{})
	if p.used == 0 {
		close(p.quiet)
	}
	return p.quiet
}

// Resume ends a pause, and gives connections to the reads that wait.
func (p *Pool) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused = false
	for len(p.idle) > 0 {
		turn, ok := p.waiting.pop()
		if !ok {
			return
		}
		turn <- p.handOut()
	}
}

// Stats returns the state of the pool.
func (p *Pool) Stats() sqldb.LaneStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return sqldb.LaneStats{InUse: p.used, Waiting: p.waiting.size, Rows: p.rows}
}

// Close waits for the reads that are running, and closes the connections. Lanes that share a
// pool close it more than once.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.busy.Wait()

	var errs []error
	for _, c := range p.idle {
		errs = append(errs, c.Close())
	}
	p.idle = nil
	return errors.Join(errs...)
}
