package draw

import (
	"cmp"
	"slices"
	"unicode"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/server/web/format"
)

// An ArcDiagram is a column of commits with an arc for each overlap between them. Its
// coordinates are those of its SVG.
type ArcDiagram struct {
	Width, Height float64
	Nodes         []Node
	Edges         []Edge
	// Left is the number of overlaps that are not drawn.
	Left int
}

// A Node is a commit: a dot at X, Y, and a name that ends at TextX.
type Node struct {
	Name, Title string
	Level       radar.Level // of its strongest overlap
	X, Y, TextX float64
}

// An Edge is an overlap: half an ellipse from Y1 down to Y2. The letter of its level
// is at TagX, TagY, the point of the arc that is furthest from the dots.
type Edge struct {
	Level            radar.Level
	Letter, Title    string
	X, Y1, Y2        float64
	RadiusX, RadiusY float64
	TagX, TagY       float64
	upper, lower     int // indexes of the nodes
	rows             int // from the upper node to the lower one
}

// The dimensions of a diagram fit a phone. They keep letters from overlapping: arcs of
// the same length are at least a row apart, others half a row and a step.
const (
	maxNodes   = 18 // more names are unreadable
	maxName    = 24 // in characters
	totalWidth = 376
	dotsX      = 192 // x coordinate of the dots
	rowHeight  = 27
	groupGap   = 12  // additional space between groups
	reach      = 158 // width of the longest arc
	maxStep    = 44  // width of an arc for each row
)

// Arcs returns the arc diagram of pairs, which are sorted by strength, strongest first. It
// leaves out those for which there is no room. It returns nil if there are no pairs.
func Arcs(pairs []ledger.RadarPair) *ArcDiagram {
	if len(pairs) == 0 {
		return nil
	}

	p := &ArcDiagram{Width: totalWidth}
	index := make(map[string]int) // node indexes by sha
	for _, pair := range pairs {
		if !p.add(index, pair) {
			p.Left++
		}
	}

	p.arrange()
	p.drawArcs()
	// The strongest are drawn last, above the others.
	slices.SortStableFunc(p.Edges, func(a, b Edge) int { return cmp.Compare(a.Level, b.Level) })
	return p
}

// add adds a pair's two commits as nodes, and an edge between them. It returns false
// if there is no room.
func (p *ArcDiagram) add(index map[string]int, pair ledger.RadarPair) bool {
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

// arrange sorts the nodes to keep arcs short, above all those of strong overlaps. It
// swaps nodes of a group as long as that shortens the total length. The groups stay
// together; the one with the strongest overlap comes first.
func (p *ArcDiagram) arrange() {
	group := p.groups()
	position := make([]int, len(p.Nodes)) // by node
	order := make([]int, len(p.Nodes))    // nodes by position
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(group[a], group[b]) })
	for i, node := range order {
		position[node] = i
	}

	length := func() (sum int) {
		for _, e := range p.Edges {
			sum += int(e.Level) * max(position[e.upper]-position[e.lower], position[e.lower]-position[e.upper])
		}
		return sum
	}

	best := length()
	for improved := true; improved; {
		improved = false
		for a := range position {
			for b := range a {
				if group[a] != group[b] {
					continue
				}
				position[a], position[b] = position[b], position[a]
				if sum := length(); sum < best {
					best, improved = sum, true
				} else {
					position[a], position[b] = position[b], position[a]
				}
			}
		}
	}

	p.reorder(position, group)
}

// groups returns the group of each node: the index of the first node that it overlaps,
// directly or through others.
func (p *ArcDiagram) groups() []int {
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

// reorder moves the nodes to their positions, with gaps between the groups.
func (p *ArcDiagram) reorder(position, group []int) {
	nodes, groups := make([]Node, len(position)), make([]int, len(position))
	for node, i := range position {
		nodes[i], groups[i] = p.Nodes[node], group[node]
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
		a, b := position[e.upper], position[e.lower]
		e.upper, e.lower = min(a, b), max(a, b)
		e.rows = e.lower - e.upper
	}
}

// drawArcs sets the coordinates of the arcs. The longer an arc, the wider it is.
func (p *ArcDiagram) drawArcs() {
	longest := 1
	for _, e := range p.Edges {
		longest = max(longest, e.rows)
	}
	step := min(float64(reach)/float64(longest), maxStep)
	for i := range p.Edges {
		e := &p.Edges[i]
		e.X, e.Y1, e.Y2 = dotsX, p.Nodes[e.upper].Y, p.Nodes[e.lower].Y
		e.RadiusX, e.RadiusY = rounded(12+step*float64(e.rows)), (e.Y2-e.Y1)/2
		e.TagX, e.TagY = e.X+e.RadiusX, e.Y1+e.RadiusY
	}
}

// shortened replaces the middle of a text that is wider than maxColumns with an
// ellipsis: branch names differ at the end as often as at the beginning.
func shortened(text string, maxColumns int) string {
	runes := []rune(text)
	if columns(runes) <= maxColumns {
		return text
	}
	head, tail := 0, len(runes)
	for columns(runes[:head+1]) <= maxColumns/2 {
		head++
	}
	for tail > head && columns(runes[tail-1:]) <= (maxColumns-1)/2 {
		tail--
	}
	return string(runes[:head]) + "…" + string(runes[tail:])
}

// columns returns the width of a text in a monospaced font. It errs on the wide side.
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
