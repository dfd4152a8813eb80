// Package conflicts has the page of Conflict Radar: who must rebase onto whom, and which
// files collide.
package conflicts

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/forge"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/server/web/commitview"
	"github.com/ledgerd/ledgerd/server/web/draw"
	"github.com/ledgerd/ledgerd/server/web/page"
	"github.com/ledgerd/ledgerd/server/web/policytext"
)

const (
	radarOverlaps  = 50  // on a page
	fileOverlaps   = 200 // from which a page of files is made
	radarTruncated = 3   // commits listed that have more overlaps than are stored
	leadersShown   = 6
)

// Routes returns the routes of the package.
func Routes() []page.Route {
	return []page.Route{page.Live(page.RadarPattern, ledger.Read, showRadar)}
}

// A radarPage shows the overlaps of a repo's commits in flight.
type radarPage struct {
	Form     *page.Form
	Levels   []page.Choice
	Branches []string // suggestions for the filter
	Settings []policytext.Sentence
	Enabled  bool
	// ByCommit and ByFile are the paths of the two views. IsByFile reports which is shown.
	ByCommit, ByFile string
	IsByFile         bool

	// Found reports whether there are overlaps, and InFlight, if not, whether any commits
	// are in flight.
	Found, InFlight bool
	// Counts are the overlaps of the page by level.
	Counts  []commitview.LevelCount
	Picture *draw.ArcDiagram
	Order   order
	// MoreLeaders counts the leaders that are not shown.
	MoreLeaders int
	Files       []file
	MoreFiles   int // files of the page that are not shown
	// Truncated are the first commits with more overlaps than are stored.
	// MoreTruncated counts the others.
	Truncated     []ledger.RadarCommit
	MoreTruncated int
	// Dropped reports whether weaker overlaps were not stored, if none was found.
	Dropped  bool
	Next     string
	Filtered bool
	// Command prints the same list in a terminal.
	Command string
}

func showRadar(v *page.Visit) (*page.Response, error) {
	f := client.OverlapFilter{Branch: v.Query("branch"), Commit: strings.TrimSpace(v.Query("commit"))}
	if name := v.Query("level"); name != "" {
		level, err := radar.ParseLevel(name)
		if err != nil || level == radar.NoLevel {
			return nil, ledger.FieldErrorf(ledger.CodeInvalidField, "level", "%q is not a level (use LOW, MEDIUM or HIGH)", name)
		}
		f.Level = level
	}

	repo, err := v.API.Repo(v.Ctx(), v.Org, v.Repo)
	if err != nil {
		return nil, err
	}
	policy, _, err := v.API.Policy(v.Ctx(), v.Org, v.Repo)
	if err != nil {
		return nil, err
	}
	p := radarPage{
		ByCommit: viewPath(v, ""), ByFile: viewPath(v, "files"), IsByFile: v.Query("view") == "files",
		Form:     page.NewForm("level", v.Query("level"), "branch", f.Branch, "commit", f.Commit),
		Levels:   page.Choices("", "All levels", "HIGH", "HIGH", "MEDIUM", "MEDIUM", "LOW", "LOW"),
		Settings: policytext.Radar(policy.Radar), Enabled: policy.Radar.Enabled,
		Filtered: f != client.OverlapFilter{}, Command: radarCommand(v, f),
	}

	err = p.read(v, f, repo.Site())
	if page.ExplainCommit(p.Form, err) {
		resp := v.Page("radar", "Conflict Radar", p)
		resp.Status = p.Form.Status
		return resp, nil
	}
	if err != nil {
		return nil, err
	}
	return v.LivePage("radar", "Conflict Radar", p, ledger.EventTypesFor(ledger.Read)...), nil
}

// plainWord matches words that need no quoting in a shell.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./@+-]*$`)

// radarCommand returns the command that lists the overlaps of a filter. It omits
// values that would need quoting.
func radarCommand(v *page.Visit, f client.OverlapFilter) string {
	command := "ledgerd radar " + v.Org + "/" + v.Repo
	if f.Level != radar.NoLevel {
		command += " --level " + f.Level.String()
	}
	for _, option := range []struct{ name, value string }{{"commit", f.Commit}, {"branch", f.Branch}} {
		if plainWord.MatchString(option.value) {
			command += " --" + option.name + " " + option.value
		}
	}
	return command
}

// viewPath returns the path of a view, with the filter of the page.
func viewPath(v *page.Visit, view string) string {
	query := make(url.Values)
	for _, name := range []string{"level", "branch", "commit"} {
		if value := v.Query(name); value != "" {
			query.Set(name, value)
		}
	}
	if view != "" {
		query.Set("view", view)
	}
	return page.WithQuery(v.PathOf(page.RadarPattern), query)
}

// read fetches a page of overlaps and arranges them. If there are none, it determines why.
func (p *radarPage) read(v *page.Visit, f client.OverlapFilter, site forge.Site) error {
	limit := radarOverlaps
	if p.IsByFile {
		limit = fileOverlaps
	}
	list, err := page.Filled(client.Query{Limit: limit, Cursor: v.Query("cursor")},
		func(q client.Query) (ledger.Page[ledger.RadarPair], error) {
			return v.API.OverlapsPage(v.Ctx(), v.Org, v.Repo, f, q)
		})
	if err != nil {
		return err
	}

	p.Found, p.Next = len(list.Data) > 0, v.NextPage(list.NextCursor)
	if !p.Found {
		return p.explainNone(v, f)
	}
	p.summarize(list.Data)
	truncated := f.Truncated(list.Data)
	p.Truncated = truncated[:min(len(truncated), radarTruncated)]
	p.MoreTruncated = len(truncated) - len(p.Truncated)
	if p.IsByFile {
		p.Files = filesOf(list.Data)
		p.MoreFiles = max(len(p.Files)-filesShown, 0)
		p.Files = p.Files[:len(p.Files)-p.MoreFiles]
		return nil
	}

	p.Picture, p.Order = draw.Arcs(list.Data), orderOf(list.Data, site)
	p.MoreLeaders = max(len(p.Order.Leaders)-leadersShown, 0)
	p.Order.Leaders = p.Order.Leaders[:len(p.Order.Leaders)-p.MoreLeaders]
	return nil
}

// summarize counts the pairs by level, and collects their branches.
func (p *radarPage) summarize(pairs []ledger.RadarPair) {
	counts := make(map[string]int)
	for _, pair := range pairs {
		counts[pair.Level.String()]++
		for _, side := range []ledger.RadarCommit{pair.Commit, pair.Other} {
			if side.Branch != "" {
				p.Branches = append(p.Branches, side.Branch)
			}
		}
	}
	slices.Sort(p.Branches)
	p.Branches = slices.Compact(p.Branches)
	p.Counts = commitview.LevelCounts(counts)
}

// explainNone determines why there are no overlaps.
func (p *radarPage) explainNone(v *page.Visit, f client.OverlapFilter) (err error) {
	if p.Dropped, err = v.API.OverlapsTruncated(v.Ctx(), v.Org, v.Repo, f); err != nil {
		return err
	}
	inFlight, err := page.Filled(client.Query{Limit: 1}, func(q client.Query) (ledger.Page[ledger.CommitSummary], error) {
		return v.API.CommitsPage(v.Ctx(), v.Org, v.Repo, client.CommitFilter{InFlight: true}, q)
	})
	p.InFlight = len(inFlight.Data) > 0
	return err
}
