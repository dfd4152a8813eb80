package web

import (
	"cmp"
	"math"
	"slices"
	"unicode"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/format"
)

// A picture shows commits one below the other, and an arc beside them for each
// overlap of two. Its numbers are those of its SVG.
type picture struct {
	Width, Height float64
	Nodes         []pictureNode
	Edges         []pictureEdge
	// Left is how many overlaps are in the list alone.
	Left int
}

// A pictureNode is one commit: a dot at X, Y, and a name that ends at TextX.
type pictureNode struct {
	Name, Title string
	Level       ledger.Level // of the strongest overlap
	X, Y, TextX float64
}

// A pictureEdge is one overlap: half an ellipse from Y1 down to Y2. The letter
// of its level stands at TagX, TagY, where it is furthest from the dots.
type pictureEdge struct {
	Level              ledger.Level
	Letter, Title      string
	X, Y1, Y2          float64
	RadiusX, RadiusY   float64
	TagX, TagY         float64
	upper, lower, span int // nodes
}

// The measures of a picture fit a telephone. No two letters are closer than a
// letter is wide: arcs as long as each other are a row apart, others half a
// row and a step.
const (
	maxPictureNodes = 18 // more names than that cannot be told apart
	maxPictureName  = 24 // in characters
	pictureWidth    = 376
	pictureDots     = 192 // where the dots are
	pictureRow      = 27
	pictureGap      = 12 // more between those that have nothing to do with each other
	pictureReach    = 158
	maxPictureStep  = 44
)

// draw draws the strongest of the pairs, which come in that order.
func draw(pairs []ledger.RadarPair) *picture {
	if len(pairs) == 0 {
		return nil
	}
	p := &picture{Width: pictureWidth}
	index := make(map[string]int) // of nodes, by sha
	for _, pair := range pairs {
		if !p.add(index, pair) {
			p.Left++
		}
	}
	p.arrange()
	p.place()
	slices.SortStableFunc(p.Edges, func(a, b pictureEdge) int { return cmp.Compare(a.Level, b.Level) }) // the strongest above the others
	return p
}

// add makes nodes of a pair's two commits and an edge between them, if there
// is room.
func (p *picture) add(index map[string]int, pair ledger.RadarPair) bool {
	sides := []ledger.RadarCommit{pair.Commit, pair.Other}
	missing := 0
	for _, side := range sides {
		if _, ok := index[side.SHA]; !ok {
			missing++
		}
	}
	if len(p.Nodes)+missing > maxPictureNodes {
		return false
	}
	for _, side := range sides {
		if _, ok := index[side.SHA]; !ok {
			index[side.SHA] = len(p.Nodes)
			name := format.CommitName(side)
			p.Nodes = append(p.Nodes, pictureNode{Name: shortened(name, maxPictureName), Title: name + " " + format.Short(side.SHA), Level: pair.Level})
		}
	}
	a, b := index[pair.Commit.SHA], index[pair.Other.SHA]
	p.Edges = append(p.Edges, pictureEdge{
		Level: pair.Level, Letter: pair.Level.String()[:1], upper: a, lower: b,
		Title: pair.Level.String() + ": " + p.Nodes[a].Title + " and " + p.Nodes[b].Title,
	})
	return true
}

// arrange puts the nodes in an order that keeps the arcs short, the stronger the
// shorter. Those that hang together stand together, that of the strongest
// overlap first.
func (p *picture) arrange() {
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
func (p *picture) groups() []int {
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
func (p *picture) reorder(place, group []int) {
	nodes, groups := make([]pictureNode, len(place)), make([]int, len(place))
	for node, at := range place {
		nodes[at], groups[at] = p.Nodes[node], group[node]
	}
	p.Nodes = nodes
	y := float64(pictureRow) / 2
	for i := range nodes {
		if i > 0 {
			y += pictureRow
			if groups[i] != groups[i-1] {
				y += pictureGap
			}
		}
		nodes[i].X, nodes[i].Y, nodes[i].TextX = pictureDots, y, pictureDots-12
	}
	p.Height = y + float64(pictureRow)/2
	for i := range p.Edges {
		e := &p.Edges[i]
		a, b := place[e.upper], place[e.lower]
		e.upper, e.lower = min(a, b), max(a, b)
		e.span = e.lower - e.upper
	}
}

// place draws the arcs: the further apart two commits stand, the wider.
func (p *picture) place() {
	longest := 1
	for _, e := range p.Edges {
		longest = max(longest, e.span)
	}
	step := min(float64(pictureReach)/float64(longest), maxPictureStep)
	for i := range p.Edges {
		e := &p.Edges[i]
		e.X, e.Y1, e.Y2 = pictureDots, p.Nodes[e.upper].Y, p.Nodes[e.lower].Y
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
