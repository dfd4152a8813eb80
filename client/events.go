package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
)

// An EventFilter filters an org's history. The zero value matches all events but
// those of type radar.
type EventFilter struct {
	// After is the id of an event. It matches later events.
	After string
	Types []ledger.EventType
	Repo  string
	// NewestFirst reverses the order.
	NewestFirst bool
}

func (f EventFilter) query() url.Values {
	query := parameters("after", f.After, "types", joinTypes(f.Types), "repo", f.Repo)
	if f.NewestFirst {
		query.Set("order", "desc")
	}
	return query
}

// Events lists the history of an org, oldest event first. Each event is the JSON
// document that webhooks receive.
func (c *Client) Events(ctx context.Context, org string, f EventFilter) iter.Seq2[json.RawMessage, error] {
	return list[json.RawMessage](ctx, c, pathOf("orgs", org, "events"), f.query())
}

// EventsPage returns one page of the list of Events.
func (c *Client) EventsPage(
	ctx context.Context, org string, f EventFilter, q Query,
) (ledger.Page[json.RawMessage], error) {
	return page[json.RawMessage](ctx, c, pathOf("orgs", org, "events"), f.query(), q)
}

// SaltedEventsPage is EventsPage, with the salts by which the leaves in the org's log commit to the events.
func (c *Client) SaltedEventsPage(
	ctx context.Context, org string, f EventFilter, q Query,
) (ledger.EventPage[json.RawMessage], error) {
	query := f.query()
	query.Set("salts", "true")
	q.addTo(query)
	p, _, err := call[ledger.EventPage[json.RawMessage]](ctx, c,
		request{method: http.MethodGet, path: pathOf("orgs", org, "events"), query: query})
	if err == nil && len(p.Salts) != 0 && len(p.Salts) != len(p.Data) {
		err = fmt.Errorf("the server returned %d events, and %d salts", len(p.Data), len(p.Salts))
	}
	return p, err
}

func joinTypes(types []ledger.EventType) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = string(t)
	}
	return strings.Join(names, ",")
}

// Ready returns nil if the server can serve requests.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.do(ctx, request{method: http.MethodGet, path: "/readyz", accept: "*/*"})
	return err
}

// Description returns the OpenAPI description of the server's API, as YAML.
func (c *Client) Description(ctx context.Context) ([]byte, error) {
	a, err := c.do(ctx, request{method: http.MethodGet, path: "/v1/openapi.yaml", accept: "*/*"})
	if err != nil {
		return nil, err
	}
	return a.body, nil
}
