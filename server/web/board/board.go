// Package board has the page of a repo: its commits as a board, or as a list.
package board

import (
	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/format"
	"github.com/ledgerd/ledgerd/server/web/page"
)

const (
	columnCards   = 25 // commits in a column of the board
	listedCommits = 50 // commits on a page of the list
	cardNeeds     = 2  // unmet requirements on a card
	listedNeeds   = 3  // unmet requirements of a commit in the list
	endingShown   = 20 // exceptions that end soon
	suggestions   = 50 // branches and authors that the filter suggests
)

// Routes returns the routes of the package.
func Routes() []page.Route {
	return []page.Route{page.Live(page.RepoPattern, ledger.Read, showRepo)}
}

// A repoPage shows the commits of a repo: as a board with a column per state,
// or, if Board is nil, as a list.
type repoPage struct {
	Repo    ledger.Repo
	Commits int64
	// Site is the repo's page on the forge, and Forge the name of the forge.
	Site, Forge string
	Filter      filter
	// Branches and Authors are suggestions for the filter.
	Branches, Authors []string
	Board             []column
	List              []card
	Next              string // the path of the next page of the list
	// Ending holds the exceptions that end soon.
	Ending []ending
}

// A column holds the newest commits in one state.
type column struct {
	State ledger.State
	// Total is the number of commits in the state. If the filter is narrow it is not
	// known: it is the number of cards.
	Total int64
	Cards []card
	// More is how many commits there are in addition to the cards. More may be 0 and
	// Rest not: then nobody has counted them.
	More int64
	Rest string // the path of the list of all commits in the state
	// Folded reports whether only the head is shown. Toggle is the path of the page with
	// the column folded, or no longer folded.
	Folded bool
	Toggle string
	// Chosen reports whether it is the one that a phone shows. Choose is the path of the
	// page where it is.
	Chosen bool
	Choose string
}

// An ending is an exception that ends soon.
type ending struct {
	Path, Name, Why, By string
	At                  ledger.Time
}

func showRepo(v *page.Visit) (*page.Response, error) {
	repo, err := v.API.Repo(v.Ctx(), v.Org, v.Repo)
	if err != nil {
		return nil, err
	}
	p := repoPage{Repo: repo, Site: repo.Site().Repo(), Forge: repo.Forge.Title()}
	for _, n := range repo.Commits {
		p.Commits += n
	}

	if p.Filter, err = filterOf(v); err != nil {
		return nil, err
	}
	if v.Query("view") == "list" || p.Filter.State != "" {
		err = p.readList(v)
	} else {
		err = p.readBoard(v)
	}
	if err != nil {
		return nil, err
	}
	p.suggest()
	if p.Ending, err = endingSoon(v); err != nil {
		return nil, err
	}

	resp := v.LivePage("repo", v.Repo, p, ledger.EventTypesFor(ledger.Read)...)
	resp.Wide = p.Board != nil
	return resp, nil
}

// readBoard reads the columns one after the other, because each keeps a processor
// busy.
func (p *repoPage) readBoard(v *page.Visit) error {
	for _, state := range ledger.States() {
		c, err := p.readColumn(v, state)
		if err != nil {
			return err
		}
		p.Board = append(p.Board, c)
	}

	p.choose()
	return nil
}

// choose sets the column that a phone shows.
func (p *repoPage) choose() {
	for i := range p.Board {
		if c := &p.Board[i]; p.Filter.Column != nil && c.State == *p.Filter.Column ||
			p.Filter.Column == nil && len(c.Cards) > 0 {
			c.Chosen = true
			return
		}
	}
	p.Board[0].Chosen = true
}

func (p *repoPage) readColumn(v *page.Visit, state ledger.State) (column, error) {
	f := p.Filter
	c := column{State: state, Rest: f.listOf(state.String()), Folded: f.isFolded(state), Toggle: f.toggled(state),
		Choose: f.boardWith(f.Folded, &state)}
	wanted := f.commits()
	wanted.State = &state

	read := func(q client.Query) (ledger.Page[ledger.CommitSummary], error) {
		return v.API.CommitsPage(v.Ctx(), v.Org, v.Repo, wanted, q)
	}
	q := client.Query{Limit: columnCards}
	var list ledger.Page[ledger.CommitSummary]
	var err error
	if f.IsNarrow() { // whose search can be long
		list, err = read(q)
	} else {
		list, err = page.Filled(q, read)
	}
	if err != nil {
		return c, err
	}

	c.Cards = cardsOf(p.Repo, list.Data, cardNeeds)
	for i := range c.Cards {
		if card := &c.Cards[i]; card.Branch == p.Repo.DefaultBranch {
			card.Branch = ""
		}
	}
	c.Total = int64(len(c.Cards))
	if !f.IsNarrow() {
		c.Total = max(p.Repo.Commits[state], c.Total) // it was counted a moment earlier
	}
	if c.More = c.Total - int64(len(c.Cards)); c.More == 0 && list.NextCursor == "" {
		c.Rest = ""
	}
	return c, nil
}

// readList fetches the requested page of the list.
func (p *repoPage) readList(v *page.Visit) (err error) {
	f := p.Filter.commits()
	if f.State, err = p.Filter.state(); err != nil {
		return err
	}
	list, err := page.Filled(client.Query{Limit: listedCommits, Cursor: v.Query("cursor")},
		func(q client.Query) (ledger.Page[ledger.CommitSummary], error) {
			return v.API.CommitsPage(v.Ctx(), v.Org, v.Repo, f, q)
		})
	if err != nil {
		return err
	}
	p.List, p.Next = cardsOf(p.Repo, list.Data, listedNeeds), v.NextPage(list.NextCursor)
	return nil
}

// suggest collects the branches and authors of the commits on the page.
func (p *repoPage) suggest() {
	cards := p.List
	for _, c := range p.Board {
		cards = append(cards, c.Cards...)
	}
	branches, authors := make(map[string]bool), make(map[string]bool)
	for _, c := range cards {
		branch, author := c.CommitSummary.Branch, c.Author.Name
		if branch != "" && !branches[branch] && len(branches) < suggestions {
			branches[branch] = true
			p.Branches = append(p.Branches, branch)
		}
		if author != "" && !authors[author] && len(authors) < suggestions {
			authors[author] = true
			p.Authors = append(p.Authors, author)
		}
	}
}

// endingSoon returns the exceptions of the repo that end soon, those that end first first.
func endingSoon(v *page.Visit) ([]ending, error) {
	list, err := v.API.ExceptionsPage(
		v.Ctx(), v.Org, v.Repo, client.ExceptionFilter{Active: true}, client.Query{Limit: endingShown})
	if err != nil {
		return nil, err
	}
	var soon []ending
	for _, x := range list.Data {
		if format.EndsSoon(x.Until, v.Now()) {
			soon = append(soon, ending{
				Path: v.PathOf(page.RepoPattern, "commits", x.Commit), Name: x.Requirement + " of " + format.Short(x.Commit),
				Why: x.Reason, By: format.PlainName(x.Identity), At: x.Until,
			})
		}
	}
	return soon, nil
}
