package server

import (
	"fmt"
	"strconv"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attention"
	"github.com/ledgerd/ledgerd/ledger/insights"
	"github.com/ledgerd/ledgerd/ledger/search"
	"github.com/ledgerd/ledgerd/store"
)

func (s *Server) listOrgs(c *call) (*reply, error) {
	q, err := c.page()
	if err != nil {
		return nil, err
	}
	deleted, err := parse(c, "deleted", onlyTrue)
	if err != nil {
		return nil, err
	}
	list := s.store.Orgs
	if deleted {
		list = s.store.DeletedOrgs
	}
	page, err := list(c.ctx(), q)
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
	return single(s.store.Org(c.ctx(), c.org()))
}

func (s *Server) changeOrg(c *call) (*reply, error) {
	var change ledger.OrgChange
	if err := c.decode(&change, smallBody); err != nil {
		return nil, err
	}
	if change.Name != nil && !c.caller.isHost() {
		return nil, ledger.Errorf(ledger.CodeForbidden,
			"only the administrator of the host can rename an org, with the ledgerd command on the host")
	}
	return shown(s.store.ChangeOrg(c.ctx(), c.org(), change))
}

// deleteOrg deletes an org whose name is confirmed, or purges a deleted one.
func (s *Server) deleteOrg(c *call) (*reply, error) {
	purge, err := c.confirm(c.org())
	if err != nil {
		return nil, err
	}
	if purge {
		return deleted(s.store.PurgeOrg(c.ctx(), c.org()))
	}
	return deleted(s.store.DeleteOrg(c.ctx(), c.org()))
}

// deleteRepo deletes a repo whose name is confirmed, or purges a deleted one.
func (s *Server) deleteRepo(c *call) (*reply, error) {
	purge, err := c.confirm(c.repo())
	if err != nil {
		return nil, err
	}
	if purge {
		return deleted(s.store.PurgeRepo(c.ctx(), c.org(), c.repo()))
	}
	return deleted(s.store.DeleteRepo(c.ctx(), c.org(), c.repo()))
}

// confirm returns an error unless the query repeats the name of what is to be deleted. It reports
// whether the query asks to purge it.
func (c *call) confirm(name string) (purge bool, err error) {
	switch confirmed := c.query.Get("confirm"); {
	case confirmed == "":
		return false, invalidParameter("confirm", "required (repeat the name: confirm=%s)", name)
	case confirmed != name:
		return false, invalidParameter("confirm", "%q is not the name (use confirm=%s)", confirmed, name)
	}
	return parse(c, "purge", onlyTrue)
}

func (s *Server) listRepos(c *call) (*reply, error) {
	q, err := c.page()
	if err != nil {
		return nil, err
	}
	deleted, err := parse(c, "deleted", onlyTrue)
	if err != nil {
		return nil, err
	}
	list := s.store.Repos
	if deleted {
		list = s.store.DeletedRepos
	}
	page, err := list(c.ctx(), c.org(), q)
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
	return single(s.store.Repo(c.ctx(), c.org(), c.repo()))
}

func (s *Server) changeRepo(c *call) (*reply, error) {
	var change ledger.RepoChange
	if err := c.decode(&change, smallBody); err != nil {
		return nil, err
	}
	return shown(s.store.ChangeRepo(c.ctx(), c.org(), c.repo(), change))
}

func (s *Server) listPredicates(c *call) (*reply, error) { return listOfOrg(c, s.store.Predicates) }

// Limits of the hits of each type that one response has.
const (
	defaultHits = 20
	maxHits     = 100
)

// search returns what a query finds in an org.
func (s *Server) search(c *call) (*reply, error) {
	parsed, err := search.Parse(c.query.Get("q"))
	if err != nil {
		return nil, err
	}
	q := store.SearchQuery{Query: parsed, Limit: defaultHits, Cursor: c.query.Get("cursor"),
		IsAdmin: c.caller.token.Scope >= ledger.Admin}
	if text := c.query.Get("limit"); text != "" {
		q.Limit, err = strconv.Atoi(text)
		if err != nil || q.Limit < 1 || q.Limit > maxHits {
			return nil, invalidParameter("limit", "%q is out of range (use 1 to %d)", text, maxHits)
		}
	}

	result, err := s.store.Search(c.ctx(), c.org(), q)
	if err != nil {
		return nil, err
	}
	response := &reply{status: 200, record: result}
	if result.NextCursor != "" {
		response.next = c.pageAt(result.NextCursor)
	}
	return response, nil
}

// getInsights returns the figures of an org or a repo.
func (s *Server) getInsights(c *call) (*reply, error) {
	days, err := parse(c, "days", parseDays)
	if err != nil {
		return nil, err
	}
	if days == 0 {
		days = insights.DefaultDays
	}
	return shown(s.store.Insights(c.ctx(), c.org(), c.query.Get("repo"), days))
}

func parseDays(text string) (int, error) {
	days, err := strconv.Atoi(text)
	if err != nil || days < 1 || days > insights.MaxDays {
		return 0, fmt.Errorf("%q is out of range (use 1 to %d)", text, insights.MaxDays)
	}
	return days, nil
}

// listAttention returns what needs attention in an org.
func (s *Server) listAttention(c *call) (*reply, error) {
	f := store.AttentionFilter{Repo: c.query.Get("repo"), Admin: c.caller.token.Scope >= ledger.Admin}
	var err error
	if f.Query, err = c.page(); err != nil {
		return nil, err
	}
	if f.Kind, err = parse(c, "kind", attention.ParseKind); err != nil {
		return nil, err
	}
	list, err := s.store.Attention(c.ctx(), c.org(), f)
	return c.listedAs(list, list.NextCursor, err)
}

// listOverview returns the repos of an org with what people want to know of each first.
func (s *Server) listOverview(c *call) (*reply, error) {
	f := store.OverviewFilter{Name: c.query.Get("name")}
	var err error
	if f.Query, err = c.page(); err != nil {
		return nil, err
	}
	if f.Sort, err = parse(c, "sort", ledger.ParseOverviewSort); err != nil {
		return nil, err
	}
	if f.Reverse, err = parse(c, "reverse", onlyTrue); err != nil {
		return nil, err
	}
	v, err := s.store.Overview(c.ctx(), c.org(), f)
	return c.listedAs(v, v.NextCursor, err)
}
