package web

import (
	"cmp"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/grid"
	"github.com/ledgerd/ledgerd/server/web/page"
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
	Latest         []page.Event
}

func showOrg(v *page.Visit) (*page.Response, error) {
	latest, err := v.Latest(eventsShown)
	if err != nil {
		return nil, err
	}

	list, err := v.API.ReposPage(v.Ctx(), v.Org, client.Query{Limit: reposShown, Cursor: v.Query("cursor")})
	if err != nil {
		return nil, err
	}
	p := orgPage{Next: v.NextPage(list.NextCursor), Latest: latest}
	for _, r := range list.Data {
		p.Repos = append(p.Repos, countsOf(r))
	}

	violations, err := v.API.ViolationsPage(v.Ctx(), v.Org, client.ViolationFilter{Status: ledger.ViolationOpen},
		client.Query{Limit: needViolations})
	if err != nil {
		return nil, err
	}
	p.Violations, p.MoreViolations = violations.Data, violations.NextCursor != ""
	needs, err := needs(v, list.Data)
	if err != nil {
		return nil, err
	}
	needs = append(violationNeeds(v, violations.Data), needs...)
	limit := needsShown
	if v.Query("needs") == "all" {
		limit = allNeedsShown
	}
	p.Needs = needs[:min(len(needs), limit)]
	p.MoreNeeds = len(needs) - len(p.Needs)
	if limit < allNeedsShown {
		p.AllNeeds = v.PathWith("needs", "all")
	}
	return v.LivePage("org", v.Org, p, ledger.EventTypes()...), nil
}

// environmentsShown is the number of environments of a page. Those of a repo are not
// separated, since there are at most ledger.MaxEnvironments of each.
const environmentsShown = 100

// An environmentsPage shows what runs where.
type environmentsPage struct {
	Grid grid.Grid
	Next string
}

func showEnvironments(v *page.Visit) (*page.Response, error) {
	list, err := v.API.EnvironmentsPage(v.Ctx(), v.Org, client.EnvironmentFilter{},
		client.Query{Limit: environmentsShown, Cursor: v.Query("cursor")})
	if err != nil {
		return nil, err
	}
	p := environmentsPage{Grid: grid.Of(list.Data), Next: v.NextPage(list.NextCursor)}
	return v.LivePage("environments", "Environments", p, ledger.EventAttestation, ledger.EventState,
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
