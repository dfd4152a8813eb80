package page

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// Adjacent overlaps of one commit share a row, with the highest level.
func TestFold(t *testing.T) {
	overlap := func(repo, commit, other string, level radar.Level) Event {
		return Event{Type: ledger.EventRadar, Repo: repo, Commit: commit, Level: level,
			Other: ledger.RadarOther{Branch: other}}
	}

	state := Event{Type: ledger.EventState, Repo: "api", Commit: "a"}

	var got []string
	for _, r := range Fold([]Event{
		state,
		overlap("api", "a", "one", radar.Low), overlap("api", "a", "two", radar.High),
		overlap("api", "a", "three", radar.Low),
		overlap("api", "b", "one", radar.Low),
		overlap("web", "b", "one", radar.Medium), overlap("web", "b", "two", radar.Low),
		state, state,
	}) {
		text := fmt.Sprint(r.Type)
		if r.Type == ledger.EventRadar {
			text = fmt.Sprint(r.Repo, r.Commit, " ", r.Level, " ", len(r.Overlaps))
		}
		for _, o := range r.Named() {
			text += " " + o.Branch
		}
		got = append(got, fmt.Sprint(text, " ", r.Rest()))
	}

	want := "state 0|apia HIGH 3 one two 1|apib LOW 0 0|webb MEDIUM 2 one two 0|state 0|state 0"
	if strings.Join(got, "|") != want {
		t.Errorf("%q, want %s", got, want)
	}
	if rows := Fold(nil); len(rows) != 0 {
		t.Errorf("%+v", rows)
	}
}
