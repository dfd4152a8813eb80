package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/julienschmidt/httprouter"

	"github.com/ledgerd/ledgerd/internal/rate"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/internal/budget"
	"github.com/ledgerd/ledgerd/server/internal/tokenexchange"
	"github.com/ledgerd/ledgerd/server/internal/wire"
)

// A call is one request to a route. When the route's handler gets it, the caller
// is authorized and the query has only parameters that the route accepts.
type call struct {
	w      http.ResponseWriter // only for reading the body
	r      *http.Request
	caller caller
	// memory is what the body and the response take. slot is the caller's place among
	// the concurrent reads. Both are nil for public routes and for the administrator of
	// the host.
	memory, slot *budget.Lease
	isRead       bool // whether beginRead was called
	identify     identify
	// acting is the context of a request that may change something. The request itself keeps its
	// context: net/http and package wire watch its body.
	acting   context.Context
	base     string // the base path of the router
	path     httprouter.Params
	query    url.Values
	maxBody  int64        // Config.MaxBody
	stopping *atomic.Bool // set when the server is about to stop
}

// ctx returns the context of the request, with the caller as the actor of what it changes.
func (c *call) ctx() context.Context {
	if c.acting != nil {
		return c.acting
	}
	return c.r.Context()
}

func (c *call) org() string  { return c.path.ByName("org") }
func (c *call) repo() string { return c.path.ByName("repo") }
func (c *call) sha() string  { return c.path.ByName("sha") }
func (c *call) id() string   { return c.path.ByName("id") }

// typicalRead is the memory in bytes that a response takes at first, until its size is
// known.
const typicalRead = 512 << 10

// beginRead waits until the caller may prepare another response. The read ends when
// the response is ready to be written. The memory comes first, so that requests that
// wait for responses to be read do not count as reads.
func (c *call) beginRead() error {
	c.isRead = true
	if err := c.memory.Grow(c.ctx(), typicalRead); err != nil {
		return err
	}
	return c.slot.Grow(c.ctx(), 1)
}

// single returns the response for a single record.
func single(record any, err error) (*reply, error) {
	if err != nil {
		return nil, err
	}
	return &reply{status: http.StatusOK, record: record, tagged: true}, nil
}

// shown returns the response for a record that is not tagged.
func shown(record any, err error) (*reply, error) {
	if err != nil {
		return nil, err
	}
	return &reply{status: http.StatusOK, record: record}, nil
}

// added returns the response for a record that was created and has no location.
func added(record any, err error) (*reply, error) {
	if err != nil {
		return nil, err
	}
	return created(record, ""), nil
}

// issued returns the response for a record that was created and has a secret.
func issued(record any, err error) (*reply, error) {
	if err != nil {
		return nil, err
	}
	return &reply{status: http.StatusCreated, record: record, secret: true}, nil
}

// created returns the response for a record that was created, with its location.
func created(record any, location string) *reply {
	return &reply{status: http.StatusCreated, record: record, location: location}
}

// listed returns the response for one page of a list.
func listed[T any](c *call, page ledger.Page[T], err error) (*reply, error) {
	return c.listedAs(page, page.NextCursor, err)
}

// listedAs returns the response for one page of a list, with the cursor of the next one.
func (c *call) listedAs(page any, next string, err error) (*reply, error) {
	if err != nil {
		return nil, err
	}
	response := &reply{status: http.StatusOK, record: page}
	if next != "" {
		response.next = c.pageAt(next)
	}
	return response, nil
}

// pageAt returns the URL of the list's page at a cursor.
func (c *call) pageAt(cursor string) string {
	query := url.Values{}
	for name, values := range c.query {
		query[name] = values
	}
	query.Set("cursor", cursor)
	return c.r.URL.EscapedPath() + "?" + query.Encode()
}

// deleted returns the response for a DELETE.
func deleted(err error) (*reply, error) {
	if err != nil {
		return nil, err
	}
	return &reply{status: http.StatusNoContent}, nil
}

// countRequest counts a call, and says how many more the caller may send
// (draft-ietf-httpapi-ratelimit-headers).
func (s *Server) countRequest(c *call) error { return s.count(c, s.rates.requests.Take) }

// countItems counts each item of a call as a request. The first is counted already.
func (s *Server) countItems(c *call, items int) error {
	return s.count(c, func(client string, now time.Time) rate.Quota {
		return s.rates.requests.TakeMore(client, items-1, now)
	})
}

// count counts requests with take, and sets the headers of the response about them.
func (s *Server) count(c *call, take func(client string, now time.Time) rate.Quota) error {
	if s.rates.requests == nil || c.caller.isHost() {
		return nil
	}
	client, who := c.caller.token.ID, "with this API token"
	if client == "" {
		client, who = rate.Client(c.r.RemoteAddr), "from this address"
	}
	q := take(client, time.Now())
	h := c.w.Header()
	h.Set("RateLimit-Policy", fmt.Sprintf(`"requests";q=%d;w=%d`, q.Burst, rateWindow))
	h.Set("RateLimit", fmt.Sprintf(`"requests";r=%d;t=%d`, q.Left, rate.Seconds(q.Full)))
	if q.Allowed {
		return nil
	}
	h.Set("Retry-After", strconv.Itoa(rate.Seconds(q.Next)))
	return ledger.Errorf(ledger.CodeTooManyRequests, "more than %d requests per second %s (setting limits.requests)",
		q.Burst/rateWindow, who)
}

// problem returns the problem for err, and counts it. An internal error is logged.
func (s *Server) problem(w http.ResponseWriter, r *http.Request, err error) ledger.Problem {
	id := w.Header().Get(wire.HeaderRequestID)
	e := wire.Explain(err)
	s.config.Observer.Refused(e.Code)
	if e.Code == ledger.CodeInternal {
		s.log.ErrorContext(r.Context(), "request failed", "method", r.Method, "path", r.URL.Path, "error", err,
			"remote", r.RemoteAddr, "request", id, wire.CallerOf(r))
	}
	p := wire.ProblemOf(e, id)
	if _, ok := errors.AsType[tokenexchange.Failure](err); ok {
		p = tokenexchange.Describe(p)
	}
	return p
}
