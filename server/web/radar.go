package web

import (
	"slices"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
)

// radarOverlaps is how many overlaps a page of the radar shows.
const radarOverlaps = 30

// A radarPage shows which commits in flight of a repo collide.
type radarPage struct {
	Form     *form
	Levels   []choice
	Branches []string // to choose from
	Settings []sentence
	Enabled  bool
	// InFlight tells that there are commits that could collide.
	InFlight bool
	Picture  *picture  // nil where there is nothing to draw
	Overlaps []overlap // each from the side of the later commit
	Next     string
	Filtered bool
}

func showRadar(v *visit) (*answer, error) {
	f := client.OverlapFilter{Branch: v.query("branch")}
	if name := v.query("level"); name != "" {
		level, err := ledger.ParseLevel(name)
		if err != nil || level == ledger.NoLevel {
			return nil, ledger.FieldErrorf(ledger.CodeInvalidParameter, "level", "%q is not a level: use LOW, MEDIUM or HIGH", name)
		}
		f.Level = level
	}
	policy, _, err := v.api.Policy(v.ctx(), v.org, v.repo)
	if err != nil {
		return nil, err
	}
	page := radarPage{
		Form:     newForm("level", v.query("level"), "branch", f.Branch),
		Levels:   []choice{{"", "All levels"}, {"HIGH", "HIGH"}, {"MEDIUM", "MEDIUM"}, {"LOW", "LOW"}},
		Settings: describeRadar(policy.Radar), Enabled: policy.Radar.Enabled,
		Filtered: f != client.OverlapFilter{},
	}
	if err := v.findOverlaps(&page, f); err != nil {
		return nil, err
	}
	return v.livePage("radar", "Conflict Radar", page, ledger.EventTypes()...), nil
}

func (v *visit) findOverlaps(page *radarPage, f client.OverlapFilter) error {
	list, err := v.api.OverlapsPage(v.ctx(), v.org, v.repo, f, client.Query{Limit: radarOverlaps, Cursor: v.query("cursor")})
	if err != nil {
		return err
	}
	for _, pair := range list.Data {
		page.Overlaps = append(page.Overlaps, overlapOf(pair.Commit.SHA, pair))
		page.Branches = append(page.Branches, pair.Commit.Branch, pair.Other.Branch)
	}
	slices.Sort(page.Branches)
	page.Branches = slices.Compact(page.Branches)
	page.Next, page.Picture = nextPage(v, list.NextCursor), draw(list.Data)
	if len(list.Data) > 0 {
		return nil
	}
	flying, err := v.api.CommitsPage(v.ctx(), v.org, v.repo, client.CommitFilter{InFlight: true}, client.Query{Limit: 1})
	page.InFlight = len(flying.Data) > 0
	return err
}

// nameOf returns what a commit is called: by its branch if it has one.
func nameOf(c ledger.RadarCommit) string {
	if c.Branch != "" {
		return c.Branch
	}
	return short(c.SHA)
}
