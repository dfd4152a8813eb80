package server

import (
	"mime"
	"net/http"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
)

// listEvents returns the live stream of an org's events, or the history if the
// client accepts only that.
func (s *Server) listEvents(c *call) (*reply, error) {
	switch accept := c.r.Header["Accept"]; {
	case accepts(accept, typeEvents):
		return s.streamEvents(c)
	case accepts(accept, typeJSON):
		return s.eventHistory(c)
	}
	return nil, ledger.Errorf(ledger.CodeNotAcceptable,
		"no acceptable media type: use Accept: %s for the live stream, or %s for the history", typeEvents, typeJSON)
}

// eventHistory returns a page of an org's history.
func (s *Server) eventHistory(c *call) (*reply, error) {
	if c.query.Has("last_event_id") {
		return nil, invalidParameter("last_event_id", "only valid for the live stream (use after for the history)")
	}
	f, err := c.eventFilter()
	if err != nil {
		return nil, err
	}
	page, err := s.store.Events(c.ctx(), c.org(), f)
	response, err := listed(c, page, err)
	if err != nil {
		return nil, err
	}
	response.vary = "Accept"
	return response, nil
}

// getEvent returns the body of an event, byte for byte as it was recorded.
func (s *Server) getEvent(c *call) (*reply, error) {
	body, err := s.store.Event(c.ctx(), c.org(), c.id())
	if err != nil {
		return nil, err
	}
	return &reply{status: http.StatusOK, body: body, mediaType: typeJSON, tagged: true}, nil
}

func (c *call) eventFilter() (f store.EventFilter, err error) {
	if f.Query, err = c.page(); err != nil {
		return f, err
	}
	if f.Types, err = parse(c, "types", ledger.ParseEventTypes); err != nil {
		return f, err
	}
	if f.Types == nil {
		f.Types = ledger.DefaultEventTypes()
	}
	oldestFirst, err := parse(c, "order", ascending)
	f.Descending = c.query.Has("order") && !oldestFirst
	f.After, f.Repo = c.query.Get("after"), c.query.Get("repo")
	return f, err
}

// accepts reports whether the Accept headers allow the media type. No header, or
// only malformed ones, allow every media type.
func accepts(headers []string, mediaType string) bool {
	main, _, _ := strings.Cut(mediaType, "/")
	parsed := false
	for _, header := range headers {
		for element := range strings.SplitSeq(header, ",") {
			accepted, parameters, err := mime.ParseMediaType(element)
			if err != nil {
				continue
			}
			parsed = true
			if accepted == mediaType || accepted == main+"/*" || accepted == "*/*" {
				q := parameters["q"]
				return q == "" || strings.Trim(q, "0.") != "" // q=0: not acceptable (RFC 9110)
			}
		}
	}
	return !parsed
}
