package web

import (
	"cmp"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/grid"
)

const (
	reposShown  = 50
	eventsShown = 15
)

// An orgPage shows the repos of an org, what needs attention, and its latest
// events.
type orgPage struct {
	Repos []repoCounts
	Next  string // path of the next page of repos; empty on the last page
	Needs []need
	// MoreNeeds counts the needs that are not shown.
	MoreNeeds int
	// AllNeeds is the path of this page with all needs; empty if it shows as many
	// as it can.
	AllNeeds string
	// Violations are the latest open violations. MoreViolations reports whether there are
	// others.
	Violations     []ledger.Violation
	MoreViolations bool
	Latest         []event
}

func showOrg(v *visit) (*response, error) {
	latest, err := v.latest(eventsShown)
	if err != nil {
		return nil, err
	}

	list, err := v.api.ReposPage(v.ctx(), v.org, client.Query{Limit: reposShown, Cursor: v.query("cursor")})
	if err != nil {
		return nil, err
	}
	page := orgPage{Next: nextPage(v, list.NextCursor), Latest: latest}
	for _, r := range list.Data {
		page.Repos = append(page.Repos, countsOf(r))
	}

	violations, err := v.api.ViolationsPage(v.ctx(), v.org, client.ViolationFilter{Status: ledger.ViolationOpen},
		client.Query{Limit: needViolations})
	if err != nil {
		return nil, err
	}
	page.Violations, page.MoreViolations = violations.Data, violations.NextCursor != ""
	needs, err := v.needs(list.Data)
	if err != nil {
		return nil, err
	}
	needs = append(v.violationNeeds(violations.Data), needs...)
	limit := needsShown
	if v.query("needs") == "all" {
		limit = allNeedsShown
	}
	page.Needs = needs[:min(len(needs), limit)]
	page.MoreNeeds = len(needs) - len(page.Needs)
	if limit < allNeedsShown {
		page.AllNeeds = v.pathWith("needs", "all")
	}
	return v.livePage("org", v.org, page, ledger.EventTypes()...), nil
}

// environmentsShown is the number of environments of a page. Those of a repo are not
// separated, since there are at most ledger.MaxEnvironments of each.
const environmentsShown = 100

// An environmentsPage shows what runs where.
type environmentsPage struct {
	Grid grid.Grid
	Next string
}

func showEnvironments(v *visit) (*response, error) {
	list, err := v.api.EnvironmentsPage(v.ctx(), v.org, client.EnvironmentFilter{},
		client.Query{Limit: environmentsShown, Cursor: v.query("cursor")})
	if err != nil {
		return nil, err
	}
	page := environmentsPage{Grid: grid.Of(list.Data), Next: nextPage(v, list.NextCursor)}
	return v.livePage("environments", "Environments", page, ledger.EventAttestation, ledger.EventState,
		ledger.EventViolation), nil
}

// A repoCounts is a repo with the bar that shows its commits by state.
type repoCounts struct {
	ledger.Repo
	Total  int64
	Shares []share
}

// A share is the segment of the bar for one state. Start and Width are in
// percent.
type share struct {
	State        ledger.State
	Count        int64
	Start, Width float64
}

// countsOf lays out the bar from the highest state to the lowest. Every segment
// has a visible width.
func countsOf(r ledger.Repo) repoCounts {
	c := repoCounts{Repo: r}
	states := ledger.States()
	for _, n := range r.Commits {
		c.Total += n
	}

	const minWidth = 1.5
	var sum float64
	for i := len(states) - 1; i >= 0; i-- {
		n := r.Commits[states[i]]
		if n == 0 {
			continue
		}
		width := max(minWidth, 100*float64(n)/float64(c.Total))
		c.Shares = append(c.Shares, share{State: states[i], Count: n, Width: width})
		sum += width
	}

	var start float64
	for i := range c.Shares {
		c.Shares[i].Width *= 100 / cmp.Or(sum, 100)
		c.Shares[i].Start = start
		start += c.Shares[i].Width
	}
	return c
}
