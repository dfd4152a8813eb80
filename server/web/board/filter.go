package board

import (
	"net/url"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/page"
)

// A filter is what the query of the page selects. Its fields are as the visitor wrote them.
type filter struct {
	State, Branch, Author, Text string
	// Folded are the columns that are folded. Column is the one that a phone shows; nil
	// for the first that has commits.
	Folded []ledger.State
	Column *ledger.State
	path   string
}

// filterOf reads the filter from the query.
func filterOf(v *page.Visit) (filter, error) {
	f := filter{
		State: v.Query("state"), Branch: strings.TrimSpace(v.Query("branch")), Author: strings.TrimSpace(v.Query("author")),
		Text: strings.TrimSpace(v.Query("text")), path: v.PathOf(page.RepoPattern),
	}
	for name := range strings.SplitSeq(v.Query("folded"), ",") {
		if state, err := ledger.ParseState(name); err == nil {
			f.Folded = append(f.Folded, state)
		}
	}
	if state, err := ledger.ParseState(v.Query("column")); err == nil {
		f.Column = &state
	}
	if _, err := f.state(); err != nil {
		return f, err
	}
	return f, nil
}

// state returns the state of the filter, or nil for any.
func (f filter) state() (*ledger.State, error) {
	if f.State == "" {
		return nil, nil
	}
	state, err := ledger.ParseState(f.State)
	if err != nil {
		return nil, ledger.FieldErrorf(ledger.CodeInvalidField, "state", "%v", err)
	}
	return &state, nil
}

// Filtered reports whether the filter leaves out any commits.
func (f filter) Filtered() bool { return f.State != "" || f.IsNarrow() }

// IsNarrow reports whether the filter leaves out commits of every state.
func (f filter) IsNarrow() bool { return f.Branch != "" || f.Author != "" || f.Text != "" }

// commits returns the filter of the API.
func (f filter) commits() client.CommitFilter {
	return client.CommitFilter{Branch: f.Branch, Author: f.Author, Text: f.Text, Standing: true}
}

// query returns the parameters of the filter, without its state.
func (f filter) query() url.Values {
	query := make(url.Values)
	for name, value := range map[string]string{"branch": f.Branch, "author": f.Author, "text": f.Text} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query
}

// List returns the path of the list with the same filter.
func (f filter) List() string { return f.listOf(f.State) }

// listOf returns the path of the list of commits in a state, with the rest of the filter.
func (f filter) listOf(state string) string {
	query := f.query()
	if state != "" {
		query.Set("state", state)
	} else {
		query.Set("view", "list")
	}
	return page.WithQuery(f.path, query)
}

// Board returns the path of the board with the same filter.
func (f filter) Board() string { return f.boardWith(f.Folded, nil) }

// boardWith returns the path of the board with these columns folded, and the one that a
// phone shows, or nil for the default.
func (f filter) boardWith(folded []ledger.State, column *ledger.State) string {
	query := f.query()
	if len(folded) > 0 {
		names := make([]string, len(folded))
		for i, state := range folded {
			names[i] = state.String()
		}
		query.Set("folded", strings.Join(names, ","))
	}
	if column != nil {
		query.Set("column", column.String())
	}
	return page.WithQuery(f.path, query)
}

// isFolded reports whether a column is folded.
func (f filter) isFolded(state ledger.State) bool { return slices.Contains(f.Folded, state) }

// toggled returns the path of the board with one column folded, or no longer folded.
func (f filter) toggled(state ledger.State) string {
	if f.isFolded(state) {
		others := slices.DeleteFunc(slices.Clone(f.Folded), func(s ledger.State) bool { return s == state })
		return f.boardWith(others, f.Column)
	}
	return f.boardWith(append(slices.Clone(f.Folded), state), f.Column)
}
