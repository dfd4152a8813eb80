package server

import (
	"errors"
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

// overlapLevel reads a level that overlaps have.
func overlapLevel(name string) (radar.Level, error) {
	level, err := radar.ParseLevel(name)
	if err == nil && level == radar.NoLevel {
		err = errors.New("no overlap is of that level: use LOW, MEDIUM or HIGH")
	}
	return level, err
}

// foresee answers what a commit would overlap with. A POST only because the
// record of a commit is too large for a query: nothing is written.
func (s *Server) foresee(c *call) (*reply, error) {
	var q ledger.RadarQuery
	if err := c.decode(&q, s.maxBody); err != nil {
		return nil, err
	}
	if err := q.Check(); err != nil {
		return nil, err
	}
	result, err := s.store.Foresee(c.ctx(), c.org(), c.repo(), q)
	if err != nil {
		return nil, err
	}
	return &reply{status: http.StatusOK, record: result}, nil
}

// withdrawCommit takes a commit out of flight.
func (s *Server) withdrawCommit(c *call) (*reply, error) {
	if err := c.noBody(); err != nil {
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
		return nil, err
	}
	return &reply{status: http.StatusOK, record: commit}, nil
}
