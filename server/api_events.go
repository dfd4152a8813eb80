package server

import (
	"mime"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
)

// listEvents answers with the live stream of an org's events, or with their
// history where only that is acceptable.
func (s *Server) listEvents(c *call) (*reply, error) {
	switch accept := c.r.Header["Accept"]; {
	case accepts(accept, typeEvents):
		return s.streamEvents(c)
	case accepts(accept, typeJSON):
		return s.eventHistory(c)
	}
	return nil, ledger.Errorf(ledger.CodeNotAcceptable, "the events are answered as %s, the live stream, or as %s, "+
		"the history", typeEvents, typeJSON)
}

// eventHistory answers the history of an org's events, page by page.
func (s *Server) eventHistory(c *call) (*reply, error) {
	if c.query.Has("last_event_id") {
		return nil, invalidParameter("last_event_id", "it is for the live stream: the history has after")
	}
	f, err := c.eventFilter()
	if err != nil {
		return nil, err
	}
	page, err := s.store.Events(c.ctx(), c.org(), f)
	answer, err := listed(c, page, err)
	if err != nil {
		return nil, err
	}
	answer.vary = "Accept"
	return answer, nil
}

func (c *call) eventFilter() (f store.EventFilter, err error) {
	if f.Query, err = c.page(); err != nil {
		return f, err
	}
	if f.Types, err = parse(c, "types", ledger.ParseEventTypes); err != nil {
		return f, err
	}
	if f.Types == nil {
		f.Types = []ledger.EventType{ledger.EventAttestation, ledger.EventState, ledger.EventPolicy}
	}
	oldestFirst, err := parse(c, "order", ascending)
	f.Descending = c.query.Has("order") && !oldestFirst
	f.After, f.Repo = c.query.Get("after"), c.query.Get("repo")
	return f, err
}

// accepts reports whether the Accept headers allow the media type. None at all
// allows every one, and so does what cannot be read.
func accepts(headers []string, mediaType string) bool {
	main, _, _ := strings.Cut(mediaType, "/")
	some := false
	for _, header := range headers {
		for element := range strings.SplitSeq(header, ",") {
			accepted, parameters, err := mime.ParseMediaType(element)
			if err != nil {
				continue
			}
			some = true
			if accepted == mediaType || accepted == main+"/*" || accepted == "*/*" {
				q := parameters["q"]
				return q == "" || strings.Trim(q, "0.") != "" // q=0 means: not this one
			}
		}
	}
	return !some
}
