package search

import (
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
)

// A sample says from when on it is complete only if rows of its time may be missing.
func TestSample(t *testing.T) {
	for _, test := range []struct {
		more  bool
		since ledger.Time
		want  string
	}{
		{false, 0, ""},
		{true, 0, "only the 1000 repos created last were read"},
		{true, 5, "only the newest 7 commits were read"},
	} {
		m := sampler{searched: searched{more: test.more}}
		got := m.sample(7, test.since, "commits")
		if got.Reason != test.want || got.Since != test.since || got.Examined != 7 {
			t.Errorf("%+v: %+v", test, got)
		}
	}
}
