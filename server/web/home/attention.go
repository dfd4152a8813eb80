package home

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attention"
	"github.com/ledgerd/ledgerd/server/web/format"
	"github.com/ledgerd/ledgerd/server/web/page"
)

// itemsShown is the number of items on a page of their list.
const itemsShown = 50

// Attention is what needs attention, with the number of items of each kind.
type Attention struct {
	Chips []chip
	Items []item
	// Total is the number of items of all kinds. TotalMore reports whether there may be more.
	Total     int
	TotalMore bool
}

// A chip leads to the items of one kind.
type chip struct {
	Label, Path string
	Count       int
	More        bool // whether there may be more than Count
	Current     bool
	Bad         bool
}

// An item is something that needs attention.
type item struct {
	attention.Item
	Label string // of its kind
	Bad   bool
	// Name is what needs attention, and Path that of its page. Name is an untrusted text.
	Name, Path string
	// Why is the reason, with the signer. It is an untrusted text.
	Why string
}

// newAttention returns what a page shows of a list, with chips for one repo, or for all if
// repo is empty.
func newAttention(v *page.Visit, list attention.List, repo string) (a Attention) {
	for _, c := range list.Counts {
		label, _ := kindsOf(c.Kind)
		a.Total, a.TotalMore = a.Total+c.Count, a.TotalMore || c.More
		if c.Count == 0 && !c.More {
			continue
		}
		a.Chips = append(a.Chips, chip{Label: label, Path: pathOfKind(v, c.Kind, repo), Count: c.Count, More: c.More,
			Current: v.Query("kind") == string(c.Kind),
			Bad:     slices.Contains([]attention.Kind{attention.Violation, attention.Lapsed, attention.Failed}, c.Kind)})
	}

	for _, i := range list.Data {
		a.Items = append(a.Items, itemOf(v, i))
	}
	return a
}

// itemOf returns an item as pages show it.
func itemOf(v *page.Visit, i attention.Item) item {
	_, label := kindsOf(i.Kind)
	return item{Item: i, Label: label, Bad: i.Severity.IsBad(), Name: cmp.Or(i.Subject, format.Short(i.Commit)),
		Path: pathOfItem(v, i), Why: reasonOf(i)}
}

// reasonOf returns the reason of an item with the plain name of the signer.
func reasonOf(i attention.Item) string {
	plain := format.PlainName(i.Identity)
	switch {
	case i.Identity == "":
		return i.Reason
	case strings.Contains(i.Reason, i.Identity):
		return strings.ReplaceAll(i.Reason, i.Identity, plain)
	}
	return i.Reason + ", by " + plain
}

// pathOfKind returns the path of the items of a kind, or of all if kind is empty.
func pathOfKind(v *page.Visit, kind attention.Kind, repo string) string {
	query := url.Values{}
	if kind != "" {
		query.Set("kind", string(kind))
	}
	if repo != "" {
		query.Set("repo", repo)
	}
	return page.WithQuery(v.PathOf(page.AttentionPattern), query)
}

func pathOfItem(v *page.Visit, i attention.Item) string {
	switch i.Object.Type {
	case attention.CommitObject:
		return v.RepoPath(i.Repo, "commits", i.Object.ID)
	case attention.WebhookObject:
		return v.RepoPath(i.Repo, "webhooks", i.Object.ID)
	case attention.IdentityObject:
		return v.PathOf(page.IdentitiesPattern)
	case attention.TokenObject:
		return v.PathOf(page.TokensPattern)
	}
	return ""
}

// An attentionPage lists what needs attention.
type attentionPage struct {
	Attention
	AllPath string // of the items of all kinds
	All     bool   // whether it shows these
	Repo    string // whose items it shows; empty for all repos
	OrgPath string // of the items of all repos
	Next    string
	// Violations is the path of the list of violations, with closed ones; empty if the page
	// does not show open ones.
	Violations string
}

func showAttention(v *page.Visit) (*page.Response, error) {
	f := client.AttentionFilter{Repo: v.Query("repo")}
	if kind, err := attention.ParseKind(v.Query("kind")); err == nil {
		f.Kind = kind
	}
	list, err := v.API.AttentionPage(v.Ctx(), v.Org, f, client.Query{Limit: itemsShown, Cursor: v.Query("cursor")})
	if err != nil {
		return nil, err
	}
	p := attentionPage{Attention: newAttention(v, list, f.Repo), All: f.Kind == "", Repo: f.Repo,
		AllPath: pathOfKind(v, "", f.Repo), OrgPath: pathOfKind(v, f.Kind, ""), Next: v.NextPage(list.NextCursor)}
	if f.Kind == attention.Violation {
		p.Violations = v.PathOf(page.OrgViolationsPattern)
	}
	return v.LivePage("attention", "Needs attention", p, ledger.EventTypesFor(ledger.Read)...), nil
}

// kindsOf returns the label of a kind, as a chip and as a row show it.
func kindsOf(k attention.Kind) (chip, row string) {
	switch k {
	case attention.Violation:
		return "Violations", "Violation"
	case attention.Lapsed:
		return "Lapsed", "Lapsed"
	case attention.Failed:
		return "Failed", "Failed"
	case attention.Review:
		return "Waiting for review", "Review"
	case attention.Conflict:
		return "Conflicts", "Conflict"
	case attention.Webhook:
		return "Webhooks", "Webhook"
	case attention.Expiring:
		return "Expiring", "Expiring"
	}
	return string(k), string(k)
}
