// Package arcdiagram draws the overlaps of a repo's commits as an arc diagram:
// commits one below the other, and an arc for each overlap of two.
package arcdiagram

import (
	"cmp"
	"math"
	"slices"
	"unicode"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/server/web/format"
)

// A Diagram shows commits one below the other, and an arc beside them for each
// overlap of two. Its numbers are those of its SVG.
type Diagram struct {
	Width, Height float64
	Nodes         []Node
	Edges         []Edge
	// Left is the number of overlaps that are not drawn.
	Left int
}

// A Node is one commit: a dot at X, Y, and a name that ends at TextX.
type Node struct {
	Name, Title string
	Level       radar.Level // of the strongest overlap
	X, Y, TextX float64
}

// An Edge is one overlap: half an ellipse from Y1 down to Y2. The letter of its
// level is at TagX, TagY, where the arc is furthest from the dots.
type Edge struct {
	Level              radar.Level
	Letter, Title      string
	X, Y1, Y2          float64
	RadiusX, RadiusY   float64
	TagX, TagY         float64
	upper, lower, span int // nodes
}

// The measures of a diagram fit a telephone. No two letters are closer than a
// letter is wide: arcs as long as each other are a row apart, others half a
// row and a step.
const (
	maxNodes   = 18 // more names than that cannot be told apart
	maxName    = 24 // in characters
	totalWidth = 376
	dotsX      = 192 // where the dots are
	rowHeight  = 27
	groupGap   = 12 // in addition, between commits that do not overlap, directly or through others
	reach      = 158
	maxStep    = 44
)

// Draw returns a diagram of the first pairs, as many as there is room for; nil if
// there are none. The strongest pairs come first.
func Draw(pairs []ledger.RadarPair) *Diagram {
	if len(pairs) == 0 {
		return nil
	}
	p := &Diagram{Width: totalWidth}
	index := make(map[string]int) // of nodes, by sha
	for _, pair := range pairs {
		if !p.add(index, pair) {
			p.Left++
		}
	}
	p.arrange()
	p.place()
	// the strongest above the others
	slices.SortStableFunc(p.Edges, func(a, b Edge) int { return cmp.Compare(a.Level, b.Level) })
	return p
}

// add makes nodes of a pair's two commits and an edge between them, if there
// is room.
func (p *Diagram) add(index map[string]int, pair ledger.RadarPair) bool {
	sides := []ledger.RadarCommit{pair.Commit, pair.Other}
	missing := 0
	for _, side := range sides {
		if _, ok := index[side.SHA]; !ok {
			missing++
		}
	}
	if len(p.Nodes)+missing > maxNodes {
		return false
	}
	for _, side := range sides {
		if _, ok := index[side.SHA]; !ok {
			index[side.SHA] = len(p.Nodes)
			name := format.CommitName(side)
			p.Nodes = append(p.Nodes, Node{Name: shortened(name, maxName), Title: name + " " + format.Short(side.SHA),
				Level: pair.Level})
		}
	}
	a, b := index[pair.Commit.SHA], index[pair.Other.SHA]
	p.Edges = append(p.Edges, Edge{
		Level: pair.Level, Letter: pair.Level.String()[:1], upper: a, lower: b,
		Title: pair.Level.String() + ": " + p.Nodes[a].Title + " and " + p.Nodes[b].Title,
	})
	return true
}

// arrange puts the nodes in an order that keeps the arcs short, the stronger the
// shorter. Those that hang together stand together, that of the strongest
// overlap first.
func (p *Diagram) arrange() {
	group := p.groups()
	place := make([]int, len(p.Nodes)) // by node
	order := make([]int, len(p.Nodes)) // nodes by place
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(group[a], group[b]) })
	for i, node := range order {
		place[node] = i
	}
	length := func() (sum int) {
		for _, e := range p.Edges {
			sum += int(e.Level) * max(place[e.upper]-place[e.lower], place[e.lower]-place[e.upper])
		}
		return sum
	}
	best := length()
	for better := true; better; {
		better = false
		for a := range place {
			for b := range a {
				if group[a] != group[b] {
					continue
				}
				place[a], place[b] = place[b], place[a]
				if now := length(); now < best {
					best, better = now, true
				} else {
					place[a], place[b] = place[b], place[a]
				}
			}
		}
	}
	p.reorder(place, group)
}

// groups tells of each node the first one that it hangs together with.
func (p *Diagram) groups() []int {
	group := make([]int, len(p.Nodes))
	for i := range group {
		group[i] = i
	}
	for _, e := range p.Edges {
		from, to := max(group[e.upper], group[e.lower]), min(group[e.upper], group[e.lower])
		for i := range group {
			if group[i] == from {
				group[i] = to
			}
		}
	}
	return group
}

// reorder moves the nodes to their places, and those of other groups apart.
func (p *Diagram) reorder(place, group []int) {
	nodes, groups := make([]Node, len(place)), make([]int, len(place))
	for node, at := range place {
		nodes[at], groups[at] = p.Nodes[node], group[node]
	}
	p.Nodes = nodes
	y := float64(rowHeight) / 2
	for i := range nodes {
		if i > 0 {
			y += rowHeight
			if groups[i] != groups[i-1] {
				y += groupGap
			}
		}
		nodes[i].X, nodes[i].Y, nodes[i].TextX = dotsX, y, dotsX-12
	}
	p.Height = y + float64(rowHeight)/2
	for i := range p.Edges {
		e := &p.Edges[i]
		a, b := place[e.upper], place[e.lower]
		e.upper, e.lower = min(a, b), max(a, b)
		e.span = e.lower - e.upper
	}
}

// place draws the arcs: the further apart two commits stand, the wider.
func (p *Diagram) place() {
	longest := 1
	for _, e := range p.Edges {
		longest = max(longest, e.span)
	}
	step := min(float64(reach)/float64(longest), maxStep)
	for i := range p.Edges {
		e := &p.Edges[i]
		e.X, e.Y1, e.Y2 = dotsX, p.Nodes[e.upper].Y, p.Nodes[e.lower].Y
		e.RadiusX, e.RadiusY = rounded(12+step*float64(e.span)), (e.Y2-e.Y1)/2
		e.TagX, e.TagY = e.X+e.RadiusX, e.Y1+e.RadiusY
	}
}

func rounded(x float64) float64 { return math.Round(x*10) / 10 }

// shortened leaves out the middle of a text that is wider than so many
// characters: branches differ at their ends as often as at their beginnings.
func shortened(text string, most int) string {
	runes := []rune(text)
	if columns(runes) <= most {
		return text
	}
	head, tail := 0, len(runes)
	for columns(runes[:head+1]) <= most/2 {
		head++
	}
	for tail > head && columns(runes[tail-1:]) <= (most-1)/2 {
		tail--
	}
	return string(runes[:head]) + "…" + string(runes[tail:])
}

// columns returns how wide a text is in a font whose letters are all alike,
// rather too wide than too narrow.
func columns(text []rune) int {
	width := 0
	for _, r := range text {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case r >= 0x1100: // Hangul, Han, emoji
			width += 2
		default:
			width++
		}
	}
	return width
}
