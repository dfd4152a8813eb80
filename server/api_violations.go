package server

import (
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
)

// listViolations returns the violations of an org, or of the repo in the path.
func (s *Server) listViolations(c *call) (*reply, error) {
	f, err := c.violationFilter()
	if err != nil {
		return nil, err
	}
	page, err := s.store.Violations(c.ctx(), c.org(), f)
	return listed(c, page, err)
}

func (c *call) violationFilter() (f store.ViolationFilter, err error) {
	if f.Query, err = c.page(); err != nil {
		return f, err
	}
	if f.Status, err = parse(c, "status", ledger.ParseViolationStatus); err != nil {
		return f, err
	}
	f.Repo, f.Predicate = c.repo(), c.query.Get("predicate")
	if f.Repo == "" {
		f.Repo = c.query.Get("repo")
	}
	if f.Commit, err = parse(c, "commit", commitPrefix); err != nil {
		return f, err
	}
	if f.Commit != "" && f.Repo == "" {
		return f, invalidParameter("commit", "only valid with repo: a commit id is looked up in one repo")
	}
	return f, nil
}

// listEnvironments returns what runs in the environments of an org.
func (s *Server) listEnvironments(c *call) (*reply, error) {
	query, err := c.page()
	if err != nil {
		return nil, err
	}
	f := store.EnvironmentFilter{Query: query, Repo: c.query.Get("repo"), Name: c.query.Get("environment")}
	page, err := s.store.Environments(c.ctx(), c.org(), f)
	return listed(c, page, err)
}
