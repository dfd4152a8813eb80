package server

import (
	"net/http"

	"github.com/ledgerd/ledgerd/ledger"
)

func (s *Server) listOrgs(c *call) (*reply, error) {
	q, err := c.page()
	if err != nil {
		return nil, err
	}
	page, err := s.store.Orgs(c.ctx(), q)
	return listed(c, page, err)
}

func (s *Server) createOrg(c *call) (*reply, error) {
	var n ledger.NewOrg
	if err := c.decode(&n, smallBody); err != nil {
		return nil, err
	}
	if err := ledger.CheckOrg(n.Name); err != nil {
		return nil, err
	}
	org, err := s.store.CreateOrg(c.ctx(), n.Name)
	if err != nil {
		return nil, err
	}
	return created(org, orgURL(org.Name)), nil
}

func (s *Server) getOrg(c *call) (*reply, error) {
	org, err := s.store.Org(c.ctx(), c.org())
	return single(org, err)
}

func (s *Server) listRepos(c *call) (*reply, error) {
	q, err := c.page()
	if err != nil {
		return nil, err
	}
	page, err := s.store.Repos(c.ctx(), c.org(), q)
	return listed(c, page, err)
}

func (s *Server) createRepo(c *call) (*reply, error) {
	var n ledger.NewRepo
	if err := c.decode(&n, smallBody); err != nil {
		return nil, err
	}
	repo, err := s.store.CreateRepo(c.ctx(), c.org(), n, c.caller.name())
	if err != nil {
		return nil, err
	}
	return created(repo, repoURL(repo.Org, repo.Name)), nil
}

func (s *Server) getRepo(c *call) (*reply, error) {
	repo, err := s.store.Repo(c.ctx(), c.org(), c.repo())
	return single(repo, err)
}

func (s *Server) changeRepo(c *call) (*reply, error) {
	var change ledger.RepoChange
	if err := c.decode(&change, smallBody); err != nil {
		return nil, err
	}
	repo, err := s.store.ChangeRepo(c.ctx(), c.org(), c.repo(), change)
	if err != nil {
		return nil, err
	}
	return &reply{status: http.StatusOK, record: repo}, nil
}

func (s *Server) listPredicates(c *call) (*reply, error) {
	q, err := c.page()
	if err != nil {
		return nil, err
	}
	page, err := s.store.Predicates(c.ctx(), c.org(), q)
	return listed(c, page, err)
}
