package server

import (
	"fmt"
	"net/http"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store"
)

func (s *Server) listOverlaps(c *call) (*reply, error) {
	f, err := c.radarFilter()
	if err != nil {
		return nil, err
	}
	page, err := s.store.Overlaps(c.ctx(), c.org(), c.repo(), f)
	return listed(c, page, err)
}

func (c *call) radarFilter() (f store.RadarFilter, err error) {
	if f.Query, err = c.page(); err != nil {
		return f, err
	}
	if f.Level, err = parse(c, "level", overlapLevel); err != nil {
		return f, err
	}
	f.Commit, err = parse(c, "commit", commitPrefix)
	f.Branch = c.query.Get("branch")
	return f, err
}

// overlapLevel parses the level of an overlap, which is never none.
func overlapLevel(name string) (radar.Level, error) {
	level, err := radar.ParseLevel(name)
	if err == nil && level == radar.NoLevel {
		err = fmt.Errorf("%q is not a level (use LOW, MEDIUM or HIGH)", name)
	}
	return level, err
}

// previewOverlaps returns the overlaps that a commit would have. It writes nothing;
// it is a POST only because a change record is too large for a query.
func (s *Server) previewOverlaps(c *call) (*reply, error) {
	var q ledger.RadarQuery
	if err := c.decodeValid(&q, s.config.Limits.MaxBody); err != nil {
		return nil, err
	}
	if err := c.beginRead(); err != nil {
		return nil, err
	}
	return shown(s.store.PreviewOverlaps(c.ctx(), c.org(), c.repo(), q))
}

// withdrawCommit takes a commit out of flight.
func (s *Server) withdrawCommit(c *call) (*reply, error) {
	if err := c.checkNoBody(); err != nil {
		return nil, err
	}
	if err := c.checkSHA(); err != nil {
		return nil, err
	}
	if err := s.store.Withdraw(c.ctx(), c.org(), c.repo(), c.sha()); err != nil {
		return nil, err
	}
	commit, err := s.store.Commit(c.ctx(), c.org(), c.repo(), c.sha())
	if err != nil {
		return nil, store.Unread("the commit was withdrawn", err)
	}
	return &reply{status: http.StatusOK, record: commit}, nil
}
