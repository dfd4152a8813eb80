package browse

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/search"
	"github.com/ledgerd/ledgerd/server/web/page"
)

// hitsShown is the maximum number of hits of each type on a page.
const hitsShown = 20

// A searchPage shows what a search found.
type searchPage struct {
	Query  string
	Groups []group
	// Problem says what is wrong with the query.
	Problem string
	// Stopped says what was not compared, and Next is the path of a page that compares more.
	Stopped string
	Next    string
	// Older reports whether this is not the first page.
	Older bool
}

// A group is what a search found of one type.
type group struct {
	Type search.Kind
	Name string
	Hits []hit
	// More reports whether there are others.
	More bool
}

// A hit is a record that was found, with the path of its page; empty if it has none.
type hit struct {
	search.Hit
	Path string
}

// names are the headings of groups.
var names = map[search.Kind]string{
	search.Commit: "Commits", search.Branch: "Branches", search.Repo: "Repos", search.Predicate: "Predicates",
	search.Signer: "Signers", search.Artifact: "Artifacts", search.Attestation: "Attestations", search.Event: "Events",
	search.Identity: "Identities", search.Webhook: "Webhooks",
}

func showSearch(v *page.Visit) (*page.Response, error) {
	p := searchPage{Query: v.Query("q"), Older: v.Query("cursor") != ""}
	if p.Query == "" {
		return v.Page("search", "Search", p), nil
	}
	q, err := search.Parse(p.Query)
	if e, ok := err.(*ledger.Error); ok {
		p.Problem = e.Fields[0].Message
		resp := v.Page("search", "Search", p)
		resp.Status = http.StatusUnprocessableEntity
		return resp, nil
	}

	result, err := v.API.Search(v.Ctx(), v.Org, q.Text, client.Query{Limit: hitsShown, Cursor: v.Query("cursor")})
	if err != nil {
		return nil, err
	}
	p.Groups, p.Next = groups(v, result), v.NextPage(result.NextCursor)
	if p.Next == "" {
		p.Stopped = result.Stopped
	}
	if only := theOnly(p.Groups); q.IsExact() && only != "" && !p.Older {
		return page.SeeOther(only), nil
	}
	return v.Page("search", "Search", p), nil
}

// groups returns the hits of a result by type, with their paths.
func groups(v *page.Visit, result search.Result) (list []group) {
	for _, h := range result.Data {
		if len(list) == 0 || list[len(list)-1].Type != h.Type {
			list = append(list, group{Type: h.Type, Name: names[h.Type]})
		}
		g := &list[len(list)-1]
		g.Hits = append(g.Hits, hit{h, pathOf(v, h)})
	}
	for i := range list {
		list[i].More = slices.Contains(result.More, list[i].Type)
	}
	return list
}

// theOnly returns the path of the only hit, or an empty text.
func theOnly(groups []group) string {
	if len(groups) != 1 || len(groups[0].Hits) != 1 {
		return ""
	}
	return groups[0].Hits[0].Path
}

// pathOf returns the path of the page that shows a hit.
func pathOf(v *page.Visit, h search.Hit) string {
	repo := func(more ...string) string { return v.RepoPath(h.Repo, more...) }
	attestations := func(filter string) string {
		if h.Repo == "" {
			return ""
		}
		return repo("attestations") + "?" + filter
	}

	switch h.Type {
	case search.Repo:
		return repo()
	case search.Branch:
		return repo() + "?branch=" + url.QueryEscape(h.Title)
	case search.Predicate:
		return attestations("predicate=" + url.QueryEscape(h.Title))
	case search.Signer:
		return attestations("signer=" + url.QueryEscape(h.Detail))
	case search.Artifact:
		return v.PathOf(page.ArtifactsPattern, h.Title)
	case search.Attestation:
		return repo("attestations", h.ID)
	case search.Identity:
		return v.PathOf(page.IdentitiesPattern)
	case search.Webhook:
		return repo("webhooks", h.ID)
	}
	switch {
	case h.Repo == "": // an event of the org
		return v.PathOf(page.ActivityPattern) + "?type=" + url.QueryEscape(h.Title)
	case h.Commit == "": // an event of a repo
		return repo()
	}
	return repo("commits", h.Commit)
}
