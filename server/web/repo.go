package web

import (
	"net/url"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/server/web/checks"
	"github.com/ledgerd/ledgerd/server/web/page"
)

const (
	columnCards   = 25 // commits in a column of the board
	listedCommits = 50 // commits on a page of the list
	cardNeeds     = 3  // unmet requirements on a card
)

// A repoPage shows the commits of a repo: as a board with a column per state,
// or, if Board is nil, as a list.
type repoPage struct {
	Repo    ledger.Repo
	Commits int64
	Board   []column
	List    commitList
	// Ending holds the exceptions that end soon.
	Ending []need
}

// A column holds the newest commits in one state.
type column struct {
	State ledger.State
	Total int64
	Cards []commitCard
	More  int64
	Path  string // of the list of all commits in the state
}

// A commitList is a page of the commits that match a filter.
type commitList struct {
	State, Branch, Author string
	Commits               []commitCard
	Next                  string
}

// Filtered reports whether a filter is set.
func (l commitList) Filtered() bool { return l.State != "" || l.Branch != "" || l.Author != "" }

// A commitCard is a commit on the board or in the list.
type commitCard struct {
	ledger.CommitSummary
	Needs     []checks.Blocker
	MoreNeeds int
	Counts    []levelCount
}

// A levelCount is the number of a commit's overlaps of a level.
type levelCount struct {
	Level radar.Level
	Count int
}

func showRepo(v *page.Visit) (*page.Response, error) {
	repo, err := v.API.Repo(v.Ctx(), v.Org, v.Repo)
	if err != nil {
		return nil, err
	}
	p := repoPage{Repo: repo}
	for _, n := range repo.Commits {
		p.Commits += n
	}

	p.List.State, p.List.Branch, p.List.Author = v.Query("state"), v.Query("branch"), v.Query("author")
	if v.Query("view") == "list" || p.List.Filtered() {
		err = p.List.read(v)
	} else {
		p.Board, err = board(v, repo)
	}
	if err != nil {
		return nil, err
	}
	if p.Ending, err = exceptionNeeds(v, v.Repo); err != nil {
		return nil, err
	}

	resp := v.LivePage("repo", v.Repo, p, ledger.EventTypes()...)
	resp.Wide = p.Board != nil
	return resp, nil
}

// board reads the columns one after the other, because each keeps a processor
// busy.
func board(v *page.Visit, repo ledger.Repo) ([]column, error) {
	var columns []column
	for _, state := range ledger.States() {
		c, err := readColumn(v, state, repo.Commits[state])
		if err != nil {
			return nil, err
		}
		columns = append(columns, c)
	}
	return columns, nil
}

func readColumn(v *page.Visit, state ledger.State, total int64) (column, error) {
	c := column{State: state, Path: v.PathOf(page.RepoPattern) + "?" + url.Values{"state": {state.String()}}.Encode()}
	filter := client.CommitFilter{State: &state, Standing: true}
	p, err := page.Filled(client.Query{Limit: columnCards},
		func(q client.Query) (ledger.Page[ledger.CommitSummary], error) {
			return v.API.CommitsPage(v.Ctx(), v.Org, v.Repo, filter, q)
		})
	if err != nil {
		return c, err
	}
	c.Cards = cardsOf(p.Data)
	c.Total = max(total, int64(len(c.Cards))) // total was counted a moment earlier
	c.More = c.Total - int64(len(c.Cards))
	return c, nil
}

// read fetches the requested page of the list.
func (l *commitList) read(v *page.Visit) error {
	f := client.CommitFilter{Branch: l.Branch, Author: l.Author, Standing: true}
	if l.State != "" {
		state, err := ledger.ParseState(l.State)
		if err != nil {
			return ledger.FieldErrorf(ledger.CodeInvalidField, "state", "%v", err)
		}
		f.State = &state
	}
	p, err := page.Filled(client.Query{Limit: listedCommits, Cursor: v.Query("cursor")},
		func(q client.Query) (ledger.Page[ledger.CommitSummary], error) {
			return v.API.CommitsPage(v.Ctx(), v.Org, v.Repo, f, q)
		})
	if err != nil {
		return err
	}
	l.Commits, l.Next = cardsOf(p.Data), v.NextPage(p.NextCursor)
	return nil
}

func cardsOf(commits []ledger.CommitSummary) []commitCard {
	cards := make([]commitCard, len(commits))
	for i, c := range commits {
		shown := c.Missing[:min(len(c.Missing), cardNeeds)]
		cards[i] = commitCard{c, checks.Blockers(shown), len(c.Missing) - len(shown), levelsOf(c.Overlaps)}
	}
	return cards
}

// levelsOf returns the levels that occur with their counts, strongest first.
func levelsOf(overlaps map[string]int) []levelCount {
	var counts []levelCount
	for level := radar.High; level > radar.NoLevel; level-- {
		if n := overlaps[level.String()]; n > 0 {
			counts = append(counts, levelCount{level, n})
		}
	}
	return counts
}
