package server

import (
	"context"
	"net/http"
	"net/url"

	"github.com/julienschmidt/httprouter"

	"github.com/ledgerd/ledgerd/ledger"
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
