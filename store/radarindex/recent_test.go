package radarindex

import (
	"fmt"
	"testing"

	"github.com/ledgerd/ledgerd/ledger/radar"
)

func TestRecentIsBounded(t *testing.T) {
	var r Recent
	small := radar.New(nil).Footprint([]radar.Change{{Path: "f", Status: "M"}})
	for i := range int64(len(r.tips) + 1) {
		r.Add(Tip{CommitID: i, Seq: 1, PolicyVersion: 1}, small)
	}

	var many []radar.Change
	for i := range maxRecentNames + 1 {
		many = append(many, radar.Change{Path: fmt.Sprint("f", i), Status: "M"})
	}
	r.Add(Tip{CommitID: 100, Seq: 1, PolicyVersion: 1}, radar.New(nil).Footprint(many))

	for _, test := range []struct {
		name    string
		tip     Tip
		version int
		want    *radar.Footprint
	}{
		{"evicted tip", Tip{CommitID: 0, Seq: 1}, 1, nil},
		{"oldest cached tip", Tip{CommitID: 1, Seq: 1}, 1, small},
		{"latest tip", Tip{CommitID: 64, Seq: 1}, 1, small},
		{"other Seq", Tip{CommitID: 64, Seq: 2}, 1, nil},
		{"other contract version", Tip{CommitID: 64, Seq: 1}, 2, nil},
		{"too many paths", Tip{CommitID: 100, Seq: 1}, 1, nil},
	} {
		if got := r.Footprint(&test.tip, test.version); got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}
