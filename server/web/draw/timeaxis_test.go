package draw_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/draw"
)

const minute = ledger.Time(60_000)

// moves returns transitions from words such as "DRAFT>ATTESTED@3", with times in minutes.
func moves(t *testing.T, words string) []ledger.Transition {
	t.Helper()

	var list []ledger.Transition
	for word := range strings.FieldsSeq(words) {
		states, at, _ := strings.Cut(word, "@")
		from, to, _ := strings.Cut(states, ">")
		var tr ledger.Transition
		var minutes int
		if _, err := fmt.Sscan(at, &minutes); err != nil {
			t.Fatal(err)
		}
		tr.At = ledger.Time(minutes) * minute

		for _, s := range []struct {
			name string
			to   *ledger.State
		}{{from, &tr.From}, {to, &tr.To}} {
			state, err := ledger.ParseState(s.name)
			must.OK(t, err)
			*s.to = state
		}
		list = append(list, tr)
	}
	return list
}

func TestAxis(t *testing.T) {
	for _, test := range []struct{ moves, want string }{
		{"", "States over time: Draft for 100 min 0 s."},
		{"DRAFT>VALIDATING@10 VALIDATING>ATTESTED@40",
			"States over time: Draft for 10 min 0 s, Validating for 30 min 0 s, Attested for 59 min 59 s."},
		{"DRAFT>VALIDATING@0 VALIDATING>ATTESTED@20 ATTESTED>VALIDATING@70",
			"States over time: Validating for 20 min 0 s, Attested for 50 min 0 s, back to Validating for 30 min 0 s."},
		{"ATTESTED>PROMOTABLE@20 PROMOTABLE>DEPLOYED@30", // older ones are missing
			"States over time: Promotable for 10 min 0 s, Deployed for 1 h 10 min."},
	} {
		a := draw.States(0, moves(t, test.moves), nil, 100*minute)
		want := strings.ReplaceAll(strings.ReplaceAll(test.want, "100 min 0 s", "1 h 40 min"), "59 min 59 s", "1 h 0 min")
		if a.Text != want {
			t.Errorf("%s\n got %s\nwant %s", test.moves, a.Text, want)
		}
		x := 0.0
		for _, b := range a.Bands {
			if b.X-x > .01 || x-b.X > .01 || b.Width < 12 {
				t.Errorf("%s: band %+v begins after %f", test.moves, b, x)
			}
			x = b.X + b.Width
		}
		if x < draw.AxisWidth-.01 || x > draw.AxisWidth+.01 {
			t.Errorf("%s: the bands end at %f", test.moves, x)
		}
	}
}

// A hundred bands fit, and the text of the picture is short.
func TestManyBands(t *testing.T) {
	words := "DRAFT>VALIDATING@1"
	for n := range 99 {
		words += fmt.Sprintf(" %s@%d", []string{"VALIDATING>ATTESTED", "ATTESTED>VALIDATING"}[n%2], n+2)
	}
	a := draw.States(0, moves(t, words), nil, 200*minute)
	last := a.Bands[len(a.Bands)-1]
	if len(a.Bands) != 101 || last.X+last.Width > draw.AxisWidth+.01 || len(a.Text) > 600 ||
		!strings.HasPrefix(a.Text, "States over time: 89 earlier changes, ") {
		t.Errorf("%d bands, the last one to %f: %s", len(a.Bands), last.X+last.Width, a.Text)
	}
	var states []string
	for _, s := range a.Spent {
		states = append(states, fmt.Sprint(s.State, s.Time, s.Now))
	}
	const want = "DRAFT 1m0s false VALIDATING 50m0s false ATTESTED 2h29m0s true"
	if got := strings.Join(states, " "); got != want {
		t.Errorf("spent %s, want %s", got, want)
	}
}

func TestMarks(t *testing.T) {
	list := []ledger.AttestationRecord{
		{RecordedAt: 75 * minute, Result: ledger.Result{Status: ledger.Fail}},
		{RecordedAt: 50 * minute, Result: ledger.Result{Status: ledger.Pass}},
		{RecordedAt: 25 * minute, Result: ledger.Result{Status: ledger.Errored}},
		{RecordedAt: 100 * minute, Result: ledger.Result{Status: ledger.Fail}},
	}
	got := fmt.Sprint(draw.States(0, nil, list, 100*minute).Marks)
	if want := "[{750 fail} {250 error} {1000 fail}]"; got != want {
		t.Errorf("marks %s, want %s", got, want)
	}
	late := moves(t, "ATTESTED>PROMOTABLE@60") // older transitions are missing
	if a := draw.States(0, late, list, 100*minute); len(a.Marks) != 2 || a.Marks[0].X != 375 {
		t.Errorf("marks after the beginning: %v", a.Marks)
	}
	if a := draw.States(0, nil, list, 0); len(a.Bands) != 1 || a.Bands[0].Width != draw.AxisWidth {
		t.Errorf("no time has passed: %+v", a)
	}
}
