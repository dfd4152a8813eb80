package server

import (
	"cmp"
	"context"
	"mime"
	"net/http"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/internal/live"
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
	withSalts, err := parse(c, "salts", onlyTrue)
	if err != nil {
		return nil, err
	}
	response, err := s.eventPage(c, f, withSalts)
	if err != nil {
		return nil, err
	}
	response.vary = "Accept"
	return response, nil
}

func (s *Server) eventPage(c *call, f store.EventFilter, withSalts bool) (*reply, error) {
	if withSalts {
		page, err := s.store.SaltedEvents(c.ctx(), c.org(), f)
		return c.listedAs(page, page.NextCursor, err)
	}
	page, err := s.store.Events(c.ctx(), c.org(), f)
	return listed(c, page, err)
}

// getEvent returns the body of an event, byte for byte as it was recorded.
func (s *Server) getEvent(c *call) (*reply, error) {
	if err := s.mayRead(c, c.id()); err != nil {
		return nil, err
	}
	body, err := s.store.Event(c.ctx(), c.org(), c.id())
	if err != nil {
		return nil, err
	}
	return &reply{status: http.StatusOK, body: body, mediaType: typeJSON, tagged: true}, nil
}

// mayRead returns an error if the caller's scope does not allow to read an event.
func (s *Server) mayRead(c *call, event string) error {
	if c.caller.token.Scope >= ledger.Admin {
		return nil
	}
	kind, err := s.store.EventType(c.ctx(), c.org(), event)
	if err != nil {
		return err
	}
	return c.caller.mayRead(kind)
}

func (c *call) eventFilter() (f store.EventFilter, err error) {
	if f.Query, err = c.page(); err != nil {
		return f, err
	}
	if f.Types, err = parse(c, "types", ledger.ParseEventTypes); err != nil {
		return f, err
	}
	if err := c.caller.mayRead(f.Types...); err != nil {
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

// listAudit returns the administrative actions in an org, as they were logged.
func (s *Server) listAudit(c *call) (*reply, error) {
	f, err := c.auditFilter()
	if err != nil {
		return nil, err
	}
	page, err := s.store.Audits(c.ctx(), c.org(), f)
	return listed(c, page, err)
}

func (c *call) auditFilter() (f store.AuditFilter, err error) {
	if f.Query, err = c.page(); err != nil {
		return f, err
	}
	f.By, f.Repo = c.query.Get("by"), c.query.Get("repo")
	var errs [3]error
	f.Action, errs[0] = parse(c, "action", ledger.ParseAuditAction)
	f.Since, errs[1] = parse(c, "since", ledger.ParseSince)
	f.Ascending, errs[2] = parse(c, "order", ascending)
	return f, cmp.Or(errs[0], errs[1], errs[2])
}

// streamEvents returns the live stream of an org's events.
func (s *Server) streamEvents(c *call) (*reply, error) {
	for _, name := range []string{"limit", "cursor", "after", "order"} {
		if c.query.Has(name) {
			return nil, invalidParameter(name, "only valid for the history (send Accept: %s)", typeJSON)
		}
	}
	f, err := c.streamFilter(s)
	if err != nil {
		return nil, err
	}

	release, err := s.streams.acquire(c.org(), c.caller.token.ID)
	if err != nil {
		return nil, err
	}
	caller := c.caller
	stream, err := s.feeds.Open(c.ctx(), c.org(), live.Options{
		Filter: f, Timing: s.timing, CutOff: s.config.Observer.CutOff, Ended: release, Stopping: s.stopping,
		Recheck: func(ctx context.Context) error { return s.recheck(ctx, caller) },
	})
	if err != nil {
		release()
		return nil, err
	}
	if err := stream.StartAfter(c.ctx(), c.lastEventID()); err != nil {
		stream.Close()
		return nil, err
	}
	return &reply{stream: stream.Serve}, nil
}

func (c *call) streamFilter(s *Server) (f live.Filter, err error) {
	f.Commit, f.Digest = c.ctx().Value(digestKey{}).(string)
	if f.Types, err = parse(c, "types", ledger.ParseEventTypes); err != nil {
		return f, err
	}
	if err := c.caller.mayRead(f.Types...); err != nil {
		return f, err
	}
	if f.Repo = c.query.Get("repo"); f.Repo != "" {
		_, err = s.store.Repo(c.ctx(), c.org(), f.Repo) // the stream of an unknown repo would have no events
	}
	return f, err
}

// lastEventID returns the event after which a stream starts, or "". The header Last-Event-ID takes
// precedence over the parameter, because a client that resumes sends the header and repeats the
// original parameter.
func (c *call) lastEventID() string {
	if id := c.r.Header.Get("Last-Event-ID"); id != "" {
		return id
	}
	return c.query.Get("last_event_id")
}
