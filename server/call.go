package server

import (
	"context"
	"net/http"
	"net/url"

	"github.com/julienschmidt/httprouter"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/internal/wire"
)

// A call is one request on its way to its handler: the caller may make it, and
// its query holds nothing that the route does not know.
type call struct {
	r      *http.Request
	caller caller
	// identify tells who makes the request; a long one asks again.
	identify identify
	path     httprouter.Params
	query    url.Values
	maxBody  int64 // Config.MaxBody
}

func (c *call) ctx() context.Context { return c.r.Context() }
func (c *call) org() string          { return c.path.ByName("org") }
func (c *call) repo() string         { return c.path.ByName("repo") }
func (c *call) sha() string          { return c.path.ByName("sha") }
func (c *call) id() string           { return c.path.ByName("id") }

// serve wraps the handler of a route: it lets in who may, and writes the
// answer or the problem.
func (s *Server) serve(rt route, identify identify) httprouter.Handle {
	return func(w http.ResponseWriter, r *http.Request, path httprouter.Params) {
		var answer *reply
		call := func() (err error) {
			answer, err = s.call(rt, &call{r: r, path: path, identify: identify, maxBody: s.maxBody})
			return err
		}
		var err error
		if wire.AsksForStream(r) {
			err = apart(call)
		} else {
			err = call()
		}
		if err == nil {
			err = answer.write(w, r)
		}
		if err != nil {
			s.fail(w, r, err)
		}
	}
}

func (s *Server) call(rt route, c *call) (*reply, error) {
	var err error
	if rt.scope != open {
		if c.caller, err = c.identify(c.r); err != nil {
			return nil, err
		}
		if err := c.caller.may(rt, c.org()); err != nil {
			return nil, err
		}
	}
	if c.query, err = parameters(c.r.URL.RawQuery, rt.parameters); err != nil {
		return nil, err
	}
	return rt.handle(c)
}

// found makes the answer of a single record that was read.
func found(record any, err error) (*reply, error) {
	if err != nil {
		return nil, err
	}
	return &reply{status: http.StatusOK, record: record, tagged: true}, nil
}

// created makes the answer of a record that was made, and is at location.
func created(record any, location string) *reply {
	return &reply{status: http.StatusCreated, record: record, location: location}
}

// listed makes the answer of one page of a list.
func listed[T any](c *call, page ledger.Page[T], err error) (*reply, error) {
	if err != nil {
		return nil, err
	}
	answer := &reply{status: http.StatusOK, record: page}
	if page.NextCursor != "" {
		answer.next = c.pageAt(page.NextCursor)
	}
	return answer, nil
}

// pageAt returns the URL of the same list from the cursor on.
func (c *call) pageAt(cursor string) string {
	query := url.Values{}
	for name, values := range c.query {
		query[name] = values
	}
	query.Set("cursor", cursor)
	return c.r.URL.EscapedPath() + "?" + query.Encode()
}

// deleted makes the answer to a DELETE.
func deleted(err error) (*reply, error) {
	if err != nil {
		return nil, err
	}
	return &reply{status: http.StatusNoContent}, nil
}
