package conflicts

import (
	"cmp"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/forge"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/server/web/commitview"
	"github.com/ledgerd/ledgerd/server/web/format"
)

// A group is a commit with the overlaps in which it comes later.
type group struct {
	Commit ledger.RadarCommit
	// Site is the address of the commit on the forge. It can be empty.
	Site string
	// Level is that of its strongest overlap.
	Level radar.Level
	Pairs []pair
	// Own are the overlaps with commits of the same author, which are folded.
	Own []pair

	conflicts int // overlaps of the level HIGH
	// wave is how many commits have to be merged one after the other before this one.
	wave  int
	since ledger.Time // the first of its overlaps
}

// A pair is an overlap, from the side of the later commit.
type pair struct {
	commitview.Overlap
	// ID identifies the pair on the page, also after others have gone.
	ID string
	// Files are the addresses of its paths at the later commit; empty ones if there is no
	// forge.
	Files []string
}

// First returns the strongest path.
func (p pair) First() string {
	if len(p.Paths) == 0 {
		return ""
	}
	return p.Paths[0].Path
}

// Others returns the number of paths after the first.
func (p pair) Others() int { return max(len(p.Paths)-1, 0) + p.MorePaths }

// A leader is a commit that others must rebase onto, and which waits for none.
type leader struct {
	Commit  ledger.RadarCommit
	Waiting int // how many must rebase onto it
}

// An order says who must rebase onto whom.
type order struct {
	Leaders []leader
	// Rebase are the commits that must rebase, in the order in which that causes the least
	// work. Near are those whose overlaps are below HIGH. Own are those that overlap only with
	// commits of the same author.
	Rebase, Near, Own []group
}

// orderOf groups pairs by their later commits. A commit comes after those that it must
// rebase onto; among commits that can go at the same time, the one with the fewest
// conflicts comes first, then the oldest.
func orderOf(pairs []ledger.RadarPair, site forge.Site) order {
	index := make(map[string]int) // of groups, by the later commit
	var groups []group
	for _, p := range pairs {
		i, ok := index[p.Commit.SHA]
		if !ok {
			i = len(groups)
			index[p.Commit.SHA] = i
			groups = append(groups, group{Commit: p.Commit, Site: site.Commit(p.Commit.SHA), since: p.Since})
		}
		groups[i].add(p, site)
	}

	setWaves(groups, index, pairs)
	slices.SortStableFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(a.wave, b.wave), cmp.Compare(a.conflicts, b.conflicts), cmp.Compare(b.Level, a.Level),
			cmp.Compare(a.since, b.since))
	})

	var o order
	for _, g := range groups {
		switch {
		case len(g.Pairs) == 0:
			o.Own = append(o.Own, g)
		case g.conflicts > 0:
			o.Rebase = append(o.Rebase, g)
		default:
			o.Near = append(o.Near, g)
		}
	}
	o.Leaders = leadersOf(groups, pairs)
	return o
}

// add adds a pair to the group of its later commit.
func (g *group) add(p ledger.RadarPair, site forge.Site) {
	one := pair{Overlap: commitview.OverlapOf(p.Commit.SHA, p),
		ID: "overlap-" + format.Short(p.Commit.SHA) + "-" + format.Short(p.Other.SHA)}
	for _, path := range one.Paths {
		one.Files = append(one.Files, site.File(p.Commit.SHA, path.Path))
	}
	if p.SameAuthor {
		g.Own = append(g.Own, one)
	} else {
		g.Pairs = append(g.Pairs, one)
	}

	g.Level, g.since = max(g.Level, p.Level), min(g.since, p.Since)
	if p.Level == radar.High {
		g.conflicts++
	}
}

// setWaves sets the wave of each group: one more than the highest of those that it must
// rebase onto.
func setWaves(groups []group, index map[string]int, pairs []ledger.RadarPair) {
	for range groups { // a chain is no longer than that
		changed := false
		for _, p := range pairs {
			later := &groups[index[p.Commit.SHA]]
			wave := 1
			if i, ok := index[p.Other.SHA]; ok {
				wave = groups[i].wave + 1
			}
			if p.Level == radar.High && wave > later.wave && wave <= len(groups) {
				later.wave, changed = wave, true
			}
		}
		if !changed {
			return
		}
	}
}

// leadersOf returns the commits that others must rebase onto and that must not themselves,
// those for which most are waiting first. It leaves out commits that wait only for others of
// the same author.
func leadersOf(groups []group, pairs []ledger.RadarPair) []leader {
	rebasing, own := make(map[string]bool), make(map[string]bool)
	for _, g := range groups {
		rebasing[g.Commit.SHA], own[g.Commit.SHA] = g.conflicts > 0, len(g.Pairs) == 0
	}
	var leaders []leader
	at := make(map[string]int)
	for _, p := range pairs {
		if p.Level != radar.High || rebasing[p.Other.SHA] || own[p.Commit.SHA] {
			continue
		}
		if _, ok := at[p.Other.SHA]; !ok {
			at[p.Other.SHA] = len(leaders)
			leaders = append(leaders, leader{Commit: p.Other})
		}
		leaders[at[p.Other.SHA]].Waiting++
	}
	slices.SortStableFunc(leaders, func(a, b leader) int { return cmp.Compare(b.Waiting, a.Waiting) })
	return leaders
}
