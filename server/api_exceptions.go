package server

import "github.com/ledgerd/ledgerd/store"

func (s *Server) listExceptions(c *call) (*reply, error) {
	f, err := c.exceptionFilter()
	if err != nil {
		return nil, err
	}
	page, err := s.store.Exceptions(c.ctx(), c.org(), c.repo(), f)
	return listed(c, page, err)
}

func (c *call) exceptionFilter() (f store.ExceptionFilter, err error) {
	if f.Query, err = c.page(); err != nil {
		return f, err
	}
	if f.Commit, err = parse(c, "commit", commitPrefix); err != nil {
		return f, err
	}
	f.Active, err = parse(c, "active", onlyTrue)
	return f, err
}
