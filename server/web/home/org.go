package home

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attention"
	"github.com/ledgerd/ledgerd/server/web/page"
)

const (
	reposShown  = 50
	itemsOnHome = 6
	// waitingRead is the number of waiting commits among which those for the visitor are looked for.
	waitingRead = 100
	// eventsRead is the number of events that are folded into up to eventsShown rows.
	eventsRead  = 40
	eventsShown = 12
)

// An orgPage shows what needs attention in an org, its repos, and its latest events.
type orgPage struct {
	Attention
	// More is the number of items that are not shown, and MorePlus whether there may be others.
	More     int
	MorePlus bool

	Name    string // the part of the names by which repos are filtered
	Columns []column
	Repos   []repoRow
	// Sorted is the number of repos that were sorted, if there are others; else 0.
	Sorted int
	Next   string
	Latest []page.EventRow
	// Unsigned says why the org's log is not signed; empty if it is.
	Unsigned string
	// Waiting has commits that wait for a review of the visitor. Live parts do not depend on it:
	// visitors share them. WaitingMore reports whether there may be others.
	Waiting     []item
	WaitingMore bool
}

// A column is a column of the table of repos.
type column struct {
	Label, Path string // of the page that is sorted by it
	// Sorted is the value of aria-sort; empty if the page is not sorted by the column.
	Sorted string
	Number bool
	// Hidden is the sort that a new filter keeps; empty for none.
	Hidden string
}

// A repoRow is a repo with the bar that shows its commits by state.
type repoRow struct {
	ledger.RepoOverview
	Total  int64
	Shares []share
}

// showOrg reads the latest events first, because the page is live.
func showOrg(v *page.Visit) (*page.Response, error) {
	events, err := v.Latest(eventsRead)
	if err != nil {
		return nil, err
	}
	rows := page.Fold(events)
	p := orgPage{Name: v.Query("name"), Latest: rows[:min(len(rows), eventsShown)]}

	list, err := v.API.AttentionPage(v.Ctx(), v.Org, client.AttentionFilter{}, client.Query{Limit: itemsOnHome})
	if err != nil {
		return nil, err
	}
	p.Attention = newAttention(v, list, "")
	p.More, p.MorePlus = p.Total-len(p.Items), p.TotalMore

	if err := p.addWaiting(v); err != nil {
		return nil, err
	}
	if err := p.addRepos(v); err != nil {
		return nil, err
	}
	log, err := v.API.Log(v.Ctx(), v.Org)
	if err != nil {
		return nil, err
	}
	p.Unsigned = log.Problem
	return v.LivePage("org", v.Org, p, ledger.EventTypesFor(ledger.Read)...), nil
}

// addWaiting adds the latest commits that wait for a review, if the visitor is a member who may review
// them, and has not.
func (p *orgPage) addWaiting(v *page.Visit) error {
	t := v.Session
	if v.Anonymous || !t.IsSignIn || !v.May(ledger.Write) {
		return nil
	}
	list, err := v.API.AttentionPage(v.Ctx(), v.Org, client.AttentionFilter{Kind: attention.Review},
		client.Query{Limit: waitingRead})
	if err != nil {
		return err
	}
	list.Data = slices.DeleteFunc(list.Data, func(i attention.Item) bool {
		return i.Review == nil || i.Review.IsReviewedBy(t.DN)
	})

	p.WaitingMore = list.NextCursor != "" || len(list.Data) > itemsOnHome
	for _, i := range list.Data[:min(len(list.Data), itemsOnHome)] {
		row := itemOf(v, i)
		row.Label, row.Why = "Review", fmt.Sprintf("%s: %d of %d", i.Review.Predicate, i.Review.Have, i.Review.Need)
		p.Waiting = append(p.Waiting, row)
	}
	return nil
}

func (p *orgPage) addRepos(v *page.Visit) error {
	f := client.OverviewFilter{Name: p.Name, Sort: sortOf(v.Query("sort")), Reverse: v.Query("reverse") != ""}
	overview, err := v.API.OverviewPage(v.Ctx(), v.Org, f, client.Query{Limit: reposShown, Cursor: v.Query("cursor")})
	if err != nil {
		return err
	}
	p.Columns, p.Next = columns(v, f), v.NextPage(overview.NextCursor)
	if overview.SortedMore && f.Sort != ledger.SortByName {
		p.Sorted = overview.Sorted
	}
	for _, r := range overview.Data {
		p.Repos = append(p.Repos, rowOf(r))
	}
	return nil
}

// sortOf returns the sort with this name, or that by name if there is none.
func sortOf(name string) ledger.OverviewSort {
	sort, err := ledger.ParseOverviewSort(name)
	if err != nil {
		return ledger.SortByName
	}
	return sort
}

// columns returns the columns of the table of repos. The one by which it is sorted leads to
// the reverse order.
func columns(v *page.Visit, f client.OverviewFilter) []column {
	list := []column{
		{Label: "Repo", Path: "name"}, {Label: "Production", Path: "production"}, {Label: "Commits"},
		{Label: "Failing", Path: "failing", Number: true}, {Label: "Blocked", Path: "blocked", Number: true},
		{Label: "Conflicts", Path: "conflicts", Number: true}, {Label: "Last activity", Path: "activity"},
	}
	for i := range list {
		c := &list[i]
		sort := ledger.OverviewSort(c.Path)
		if sort == "" {
			continue
		}
		query := url.Values{}
		if f.Name != "" {
			query.Set("name", f.Name)
		}
		if sort != ledger.SortByName {
			query.Set("sort", c.Path)
		}

		if sort == f.Sort {
			c.Hidden = query.Get("sort")
			ascending := (sort == ledger.SortByName) != f.Reverse
			if c.Sorted = "descending"; ascending {
				c.Sorted = "ascending"
			}
			if !f.Reverse {
				query.Set("reverse", "true")
			}
		}
		c.Path = page.WithQuery(v.PathOf(page.OrgPattern), query)
	}
	return list
}

// A share is the segment of the bar for one state. Start and Width are in
// percent.
type share struct {
	State        ledger.State
	Count        int64
	Start, Width float64
}

// rowOf lays out the bar from the highest state to the lowest. Every segment has a visible
// width.
func rowOf(r ledger.RepoOverview) repoRow {
	row := repoRow{RepoOverview: r}
	for _, n := range r.Commits {
		row.Total += n
	}

	const minWidth = 1.5
	var sum float64
	for _, state := range slices.Backward(ledger.States()) {
		n := r.Commits[state]
		if n == 0 {
			continue
		}
		width := max(minWidth, 100*float64(n)/float64(row.Total))
		row.Shares = append(row.Shares, share{State: state, Count: n, Width: width})
		sum += width
	}

	var start float64
	for i := range row.Shares {
		row.Shares[i].Width *= 100 / cmp.Or(sum, 100)
		row.Shares[i].Start = start
		start += row.Shares[i].Width
	}
	return row
}
