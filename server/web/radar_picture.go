package web

import (
	"cmp"
	"math"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
)

// A picture shows commits on a circle and a line for each overlap of two. Its
// numbers are those of its SVG.
type picture struct {
	Width, Height float64
	Nodes         []pictureNode
	Edges         []pictureEdge
	// Left is how many overlaps are in the list alone.
	Left int
}

// A pictureNode is one commit. Its name stands at TextX, with the end that
// Anchor says.
type pictureNode struct {
	Name, Title  string
	Level        ledger.Level // of the strongest overlap
	X, Y         float64
	TextX, TextY float64
	Anchor       string
}

// A pictureEdge is one overlap, bent through a point towards the middle. What
// is told of it stands at TextX and TextY.
type pictureEdge struct {
	Level          ledger.Level
	Letter, Title  string
	X1, Y1, X2, Y2 float64
	BendX, BendY   float64
	TextX, TextY   float64
}

const (
	maxPictureNodes = 18 // more names than that cannot be told apart
	maxPictureName  = 26 // in characters
	pictureWidth    = 760
	pictureHeight   = 440
)

// draw draws the strongest of the pairs, which come in that order.
func draw(pairs []ledger.RadarPair) *picture {
	if len(pairs) == 0 {
		return nil
	}
	p := &picture{Width: pictureWidth, Height: pictureHeight}
	index := make(map[string]int) // of nodes, by sha
	var drawn []ledger.RadarPair
	for _, pair := range pairs {
		if !p.add(index, pair) {
			p.Left++
			continue
		}
		drawn = append(drawn, pair)
	}
	p.place()
	for _, pair := range drawn {
		p.connect(index, pair)
	}
	slices.SortStableFunc(p.Edges, func(a, b pictureEdge) int { return cmp.Compare(a.Level, b.Level) }) // the strongest above the others
	return p
}

// add makes nodes of a pair's two commits, if there is room.
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
			name := nameOf(side)
			p.Nodes = append(p.Nodes, pictureNode{Name: clipped(name, maxPictureName), Title: name + " " + short(side.SHA), Level: pair.Level})
		}
	}
	return true
}

// place puts the nodes on an ellipse, the first one on top.
func (p *picture) place() {
	const (
		radiusX, radiusY = pictureWidth/2 - 190, pictureHeight/2 - 45
		gap              = 14 // between a node and its name
	)
	for i := range p.Nodes {
		angle := 2*math.Pi*float64(i)/float64(len(p.Nodes)) - math.Pi/2
		n := &p.Nodes[i]
		x, y := math.Cos(angle), math.Sin(angle)
		n.X, n.Y = rounded(pictureWidth/2+radiusX*x), rounded(pictureHeight/2+radiusY*y)
		n.TextX, n.TextY, n.Anchor = n.X, rounded(n.Y+4), "middle"
		switch {
		case x > 0.2:
			n.TextX, n.Anchor = rounded(n.X+gap), "start"
		case x < -0.2:
			n.TextX, n.Anchor = rounded(n.X-gap), "end"
		case y < 0:
			n.TextY = rounded(n.Y - gap)
		default:
			n.TextY = rounded(n.Y + gap + 10)
		}
	}
}

// connect draws a line between a pair's two commits.
func (p *picture) connect(index map[string]int, pair ledger.RadarPair) {
	a, b := p.Nodes[index[pair.Commit.SHA]], p.Nodes[index[pair.Other.SHA]]
	bend := func(one, other, middle float64) float64 { return rounded((one+other)/2*0.55 + middle*0.45) }
	e := pictureEdge{
		Level: pair.Level, Letter: pair.Level.String()[:1],
		Title: pair.Level.String() + ": " + a.Title + " and " + b.Title,
		X1:    a.X, Y1: a.Y, X2: b.X, Y2: b.Y,
		BendX: bend(a.X, b.X, pictureWidth/2), BendY: bend(a.Y, b.Y, pictureHeight/2),
	}
	// Where a curve of Bézier's is, a good third of its way from the commit that
	// has to be rebased: lines through the middle meet there.
	const t = 0.38
	at := func(from, bend, to float64) float64 {
		return rounded((1-t)*(1-t)*from + 2*t*(1-t)*bend + t*t*to)
	}
	e.TextX, e.TextY = at(e.X1, e.BendX, e.X2), at(e.Y1, e.BendY, e.Y2)
	p.Edges = append(p.Edges, e)
}

func rounded(x float64) float64 { return math.Round(x*10) / 10 }

// clipped cuts a text that has more characters.
func clipped(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
