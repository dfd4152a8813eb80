// Package draw lays out what pages show as SVG: charts of columns, lines and ranges, the overlaps of a repo's
// commits as arcs, and how long a commit was in which state. Coordinates fit a phone, and grow with the page.
package draw

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// A Chart is what an SVG draws, in the order of the fields.
type Chart struct {
	Width, Height float64
	Title, Text   string // what it shows, and in words
	Grid          []Mark // lines across the chart, with the values of the axis
	Bars          []Bar
	Lines         []Line
	Dots          []Dot
	Labels        []Mark // below the axis, or of rows
	// Empty reports whether no value was given.
	Empty bool
}

// A Mark is a text at a point.
type Mark struct {
	X, Y float64
	Text string
}

// A Bar is a rectangle. Class says what it stands for.
type Bar struct {
	X, Y, Width, Height float64
	Class, Title        string
}

// A Line is a polyline.
type Line struct{ Class, Points string }

// A Dot is a point of a line.
type Dot struct {
	X, Y         float64
	Class, Title string
}

// The dimensions of a chart.
const (
	chartWidth   = 380
	chartHeight  = 190
	axisLeft     = 52 // where the axis begins, right of its values
	marginRight  = 8
	marginTop    = 12
	marginBottom = 24
	rowSize      = 44
	nameRow      = 88 // width of the names of rows
)

// A Value is a value of a series at a place of the axis. Missing ones are not drawn.
type Value struct {
	Value   float64
	Missing bool
	Title   string
}

// A Series is a row of values. Class says how it is drawn.
type Series struct {
	Class  string
	Values []Value
}

// Columns draws stacked columns of counts, the first series at the bottom.
func Columns(labels []string, stack ...Series) *Chart {
	most := 0.0
	for i := range labels {
		sum := 0.0
		for _, s := range stack {
			sum += s.Values[i].Value
		}
		most = max(most, sum)
	}
	c := &Chart{Width: chartWidth, Height: chartHeight, Empty: most == 0}
	scale := c.axis(most, countSteps(most), func(v float64) string { return strconv.Itoa(int(v)) })
	c.weeks(labels)

	slot := float64(chartWidth-axisLeft-marginRight) / float64(len(labels))
	wide := min(slot*0.72, 26)
	for i := range labels {
		base := 0.0
		for _, s := range stack {
			v := s.Values[i]
			if v.Value == 0 {
				continue
			}
			c.Bars = append(c.Bars, Bar{
				X: rounded(axisLeft + slot*(float64(i)+.5) - wide/2), Width: rounded(wide),
				Y: scale(base + v.Value), Height: rounded(scale(base) - scale(base+v.Value)), Class: s.Class, Title: v.Title,
			})
			base += v.Value
		}
	}
	return c
}

// Durations draws lines of durations in milliseconds. A line is interrupted where a value is
// missing.
func Durations(labels []string, series ...Series) *Chart {
	most, isEmpty := 0.0, true
	for _, s := range series {
		for _, v := range s.Values {
			if !v.Missing {
				most, isEmpty = max(most, v.Value), false
			}
		}
	}
	c := &Chart{Width: chartWidth, Height: chartHeight, Empty: isEmpty}
	scale := c.axis(most, durationStep(most), shortDuration)
	c.weeks(labels)

	slot := float64(chartWidth-axisLeft-marginRight) / float64(len(labels))
	for _, s := range series {
		var points []string
		end := func() {
			if len(points) > 1 {
				c.Lines = append(c.Lines, Line{s.Class, strings.Join(points, " ")})
			}
			points = nil
		}
		for i, v := range s.Values {
			if v.Missing {
				end()
				continue
			}
			x, y := rounded(axisLeft+slot*(float64(i)+.5)), scale(v.Value)
			points = append(points, text(x)+","+text(y))
			c.Dots = append(c.Dots, Dot{x, y, s.Class, v.Title})
		}
		end()
	}
	return c
}

// A Range is a row with a bar up to Low, and a lighter one on to High.
type Range struct {
	Name, Class string
	Low, High   float64
	Label       string // at the end of the bar
	Title       string
}

// Ranges draws a row for each range, on one scale.
func Ranges(rows []Range) *Chart {
	most := 0.0
	for _, r := range rows {
		most = max(most, r.High)
	}
	c := &Chart{Width: chartWidth, Height: float64(len(rows) * rowSize), Empty: most == 0}
	room := float64(chartWidth - nameRow - marginRight)
	for i, r := range rows {
		y := float64(i*rowSize) + 8
		c.Labels = append(c.Labels, Mark{0, y + 11, r.Name}, Mark{nameRow, y + 30, r.Label})
		if most == 0 {
			continue
		}
		low, high := max(rounded(room*r.Low/most), 1), max(rounded(room*r.High/most), 1)
		if r.High > 0 {
			c.Bars = append(c.Bars,
				Bar{X: nameRow, Y: y, Width: high, Height: 14, Class: r.Class + " weak", Title: r.Title},
				Bar{X: nameRow, Y: y, Width: low, Height: 14, Class: r.Class, Title: r.Title})
		}
	}
	return c
}

// axis adds the lines of an axis from 0, and returns the scale.
func (c *Chart) axis(most, step float64, name func(float64) string) func(float64) float64 {
	end := max(math.Ceil(most/step), 1) * step
	scale := func(v float64) float64 {
		return rounded(chartHeight - marginBottom - v/end*(chartHeight-marginBottom-marginTop))
	}
	for v := 0.0; v <= end; v += step {
		c.Grid = append(c.Grid, Mark{axisLeft, scale(v), name(v)})
	}
	return scale
}

// weeks adds labels below the axis: as many as there is room for, among them the last.
func (c *Chart) weeks(labels []string) {
	slot := float64(chartWidth-axisLeft-marginRight) / float64(len(labels))
	every := int(math.Ceil(62 / slot))
	for i := (len(labels) - 1) % every; i < len(labels); i += every {
		x := min(max(rounded(axisLeft+slot*(float64(i)+.5)), axisLeft+20), chartWidth-24)
		c.Labels = append(c.Labels, Mark{x, chartHeight - 7, labels[i]})
	}
}

// maxSteps is the maximum number of steps of an axis.
const maxSteps = 4

// countSteps returns the step of an axis of counts: 1, 2 or 5 and zeros.
func countSteps(most float64) float64 {
	for step := 1.0; ; step *= 10 {
		for _, n := range []float64{1, 2, 5} {
			if most <= n*step*maxSteps {
				return n * step
			}
		}
	}
}

// durationSteps are the steps of an axis of durations.
var durationSteps = []time.Duration{
	time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	day, 2 * day, 5 * day, 10 * day, 30 * day, 100 * day, 300 * day, 1000 * day,
}

const day = 24 * time.Hour

func durationStep(most float64) float64 {
	for _, step := range durationSteps {
		if ms := float64(step.Milliseconds()); most <= ms*maxSteps {
			return ms
		}
	}
	return most
}

// shortDuration returns a step of an axis of durations.
func shortDuration(ms float64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d == 0:
		return "0"
	case d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + " s"
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + " min"
	case d%day != 0:
		return text(rounded(d.Hours())) + " h"
	}
	return strconv.Itoa(int(d/day)) + " d"
}

func rounded(x float64) float64 { return math.Round(x*10) / 10 }

func text(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
