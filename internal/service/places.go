package service

import (
	"container/list"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/webhook/dispatch"
)

const (
	// maxPlaces is the maximum number of open connections, however many files the
	// process may open.
	maxPlaces = 16_384
	// maxStarting is the maximum number of new connections that have not sent the head
	// of a request. Each takes up to 60 KB.
	maxStarting = 4096
	// maxIdle is the maximum number of connections between two requests. Each takes
	// about 20 KB, or as much as a new one if it has sent half of the next head.
	maxIdle = 4096
	// minPlaces is the limit if the process may open very few files.
	minPlaces = 16
	// reservedFiles are for the database, the log and connections that are being closed.
	reservedFiles = 128
	// headTime is how long a new connection may take to send the head of its first
	// request before it can be closed in favour of another one.
	headTime = 250 * time.Millisecond
	// placeRetry is how often a connection for which there is no place looks again.
	placeRetry = 25 * time.Millisecond
)

// placesFor returns how many connections a process may have that can open that number
// of files. Each webhook request in flight can take two more: its connection, and an
// idle one.
func placesFor(files, webhookRequests int) int {
	webhooks := 2 * min(webhookRequests, files/4)
	return min(max(files-webhooks-reservedFiles, minPlaces), maxPlaces)
}

// MaxConnections returns how many connections a server may have in this process, which may open a
// limited number of files.
func MaxConnections() int { return placesFor(maxFiles(), dispatch.DefaultTotalInFlight) }

// places limits the open connections of an http.Server. If too many are idle, the one
// that has been idle longest is closed. If there are too many in all, a new one takes the
// place of the first that has sent no request within headTime, or else of the one that has
// been idle longest. If all are in use, it waits. If too many new ones have sent no
// request, only one of those makes room.
type places struct {
	limit                int
	maxStarting, maxIdle int
	freed                chan struct{} // signals that a place was left; capacity 1

	mu       sync.Mutex
	taken    int
	starting *list.List // of *place: new connections, oldest first
	idle     *list.List // of *place: connections between two requests, longest idle first
}

func newPlaces(limit int) *places {
	return &places{limit: limit, maxStarting: maxStarting, maxIdle: maxIdle, freed: make(chan struct{}, 1),
		starting: list.New(), idle: list.New()}
}

// A place is that of one connection among all. Its fields are guarded by all.mu.
type place struct {
	all  *places
	conn net.Conn // closed to free the place

	since   time.Time     // when the connection was accepted or became idle
	list    *list.List    // starting or idle; nil during a request
	element *list.Element // of list
	left    bool
}

// take waits for a place for a connection. It returns nil if closing is closed first.
// The caller must call leave when the connection is closed.
func (p *places) take(conn net.Conn, closing <-chan struct{}) *place {
	pl := &place{all: p, conn: conn}
	for !p.tryTake(pl) {
		select {
		case <-p.freed:
		case <-time.After(placeRetry):
		case <-closing:
			return nil
		}
	}
	return pl
}

// tryTake takes a place. If all are taken, it closes another connection, if possible,
// and returns false.
func (p *places) tryTake(pl *place) bool {
	p.mu.Lock()
	if p.taken < p.limit && p.starting.Len() < p.maxStarting {
		defer p.mu.Unlock()
		p.taken++
		pl.move(p.starting)
		return true
	}
	victim := p.victim()
	p.mu.Unlock()

	if victim != nil {
		_ = victim.conn.Close() // a failure only means that it is closed already
	}
	return false
}

// victim returns the place to free next; nil if all are in use. The caller holds mu.
func (p *places) victim() *place {
	if first := p.starting.Front(); first != nil {
		if pl := first.Value.(*place); time.Since(pl.since) > headTime {
			return pl
		}
	}
	if first := p.idle.Front(); first != nil && p.starting.Len() < p.maxStarting {
		return first.Value.(*place)
	}
	return nil
}

// changed notes the new state of the connection.
func (pl *place) changed(state http.ConnState) {
	if victim := pl.note(state); victim != nil {
		_ = victim.conn.Close() // a failure only means that it is closed already
	}
}

// note notes the new state of the connection. It returns the place that has been idle
// longest if too many are.
func (pl *place) note(state http.ConnState) (victim *place) {
	p := pl.all
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case pl.left:
	case state == http.StateActive:
		pl.move(nil)
	case state == http.StateIdle:
		pl.move(p.idle)
		if p.idle.Len() > p.maxIdle {
			victim = p.idle.Front().Value.(*place)
			victim.move(nil) // the next one takes another
		}
	}
	return victim
}

// leave frees the place. Further calls have no effect.
func (pl *place) leave() {
	p := pl.all
	p.mu.Lock()
	defer p.mu.Unlock()
	if pl.left {
		return
	}
	pl.left = true
	pl.move(nil)
	p.taken--
	select {
	case p.freed <- struct{}{}:
	default:
	}
}

// move moves the place to the end of a list; nil for none. The caller holds mu.
func (pl *place) move(to *list.List) {
	if pl.list != nil {
		pl.list.Remove(pl.element)
	}
	if pl.list = to; to != nil {
		pl.since, pl.element = time.Now(), to.PushBack(pl)
	}
}
