package draw_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/server/web/draw"
)

func values(list ...float64) (v []draw.Value) {
	for _, value := range list {
		v = append(v, draw.Value{Value: max(value, 0), Missing: value < 0})
	}
	return v
}

func labels(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint(i))
	}
	return list
}

// inside fails unless everything is within the chart.
func inside(t *testing.T, c *draw.Chart) {
	t.Helper()
	for _, b := range c.Bars {
		if b.X < 0 || b.Y < 0 || b.Width <= 0 || b.Height < 0 || b.X+b.Width > c.Width || b.Y+b.Height > c.Height {
			t.Errorf("%+v is outside of %v × %v", b, c.Width, c.Height)
		}
	}
	for _, d := range c.Dots {
		if d.X < 0 || d.Y < 0 || d.X > c.Width || d.Y > c.Height {
			t.Errorf("%+v is outside of %v × %v", d, c.Width, c.Height)
		}
	}
	for _, m := range append(c.Grid, c.Labels...) {
		if m.X < 0 || m.Y < 0 || m.X > c.Width || m.Y > c.Height {
			t.Errorf("%+v is outside of %v × %v", m, c.Width, c.Height)
		}
	}
}

func TestChartsFit(t *testing.T) {
	random := testenv.Rand(t)
	for n := 1; n <= 54; n++ {
		for _, scale := range []float64{0, 1, 7, 1000, 1e6, 1e9, 1e11} {
			counts, failed, durations := make([]float64, n), make([]float64, n), make([]float64, n)
			for i := range n {
				counts[i], failed[i] = float64(int(random.Float64()*scale)), float64(int(random.Float64()*scale))
				durations[i] = random.Float64()*scale*1.2 - scale/10
			}

			c := draw.Columns(labels(n), draw.Series{Values: values(counts...)}, draw.Series{Values: values(failed...)})
			inside(t, c)
			d := draw.Durations(labels(n), draw.Series{Values: values(durations...)})
			inside(t, d)
			inside(t, draw.Ranges([]draw.Range{{Low: scale / 3, High: scale}, {}, {Low: 1, High: 1}}))
			if len(c.Grid) < 2 || len(c.Grid) > 6 || len(d.Grid) < 2 || len(d.Grid) > 6 || len(c.Labels) > 7 {
				t.Errorf("%d values up to %v: %d and %d lines, %d labels", n, scale, len(c.Grid), len(d.Grid), len(c.Labels))
			}
			if last := c.Labels[len(c.Labels)-1].Text; last != fmt.Sprint(n-1) {
				t.Errorf("%d values: the last label is %s", n, last)
			}
		}
	}
}

func TestColumnsAreStacked(t *testing.T) {
	c := draw.Columns(labels(2), draw.Series{Class: "good", Values: values(3, 0)},
		draw.Series{Class: "bad", Values: values(1, 0)})
	if len(c.Bars) != 2 || c.Bars[1].Y+c.Bars[1].Height != c.Bars[0].Y || c.Bars[0].Height != 3*c.Bars[1].Height {
		t.Errorf("%+v", c.Bars)
	}
	c = draw.Columns(labels(1), draw.Series{Values: values(0)}, draw.Series{Class: "bad", Values: values(1)})
	if len(c.Bars) != 1 || c.Bars[0].Class != "bad" {
		t.Errorf("on nothing: %+v", c.Bars)
	}
	if c.Empty || !draw.Columns(labels(1), draw.Series{Values: values(0)}).Empty {
		t.Error("a chart is empty if all counts are 0, and only then")
	}
}

func TestEmptyRangesHaveLabels(t *testing.T) {
	c := draw.Ranges([]draw.Range{{Name: "a"}, {Name: "b"}})
	if !c.Empty || len(c.Labels) != 4 || c.Labels[2].Text != "b" {
		t.Errorf("%+v", c)
	}
}

func TestLinesAreInterrupted(t *testing.T) {
	hour := float64(time.Hour.Milliseconds())
	c := draw.Durations(labels(6), draw.Series{Class: "median", Values: values(hour, 2*hour, -1, 3*hour, 0, -1)})
	if len(c.Lines) != 2 || strings.Count(c.Lines[0].Points, ",") != 2 || len(c.Dots) != 4 || c.Empty {
		t.Errorf("%+v", c)
	}
	var axis []string
	for _, m := range c.Grid {
		axis = append(axis, m.Text)
	}
	if got := strings.Join(axis, " "); got != "0 1 h 2 h 3 h" {
		t.Errorf("axis %s", got)
	}
	c = draw.Durations(labels(1), draw.Series{Values: values(1.6 * hour)})
	if last := c.Grid[len(c.Grid)-1].Text; last != "2 h" || c.Grid[3].Text != "1.5 h" {
		t.Errorf("axis %+v", c.Grid)
	}
	if c := draw.Durations(labels(1), draw.Series{Values: values(-1)}); !c.Empty || len(c.Dots) != 0 {
		t.Errorf("%+v", c)
	}
}
