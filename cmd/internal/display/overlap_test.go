package display

import (
	"bytes"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// TestOverlapsWithoutPaths checks that a pair without paths is printed with dashes,
// although servers send paths.
func TestOverlapsWithoutPaths(t *testing.T) {
	var out bytes.Buffer
	one := ledger.RadarCommit{SHA: "1111111111111111111111111111111111111111", Branch: "one"}
	two := ledger.RadarCommit{SHA: "2222222222222222222222222222222222222222", Branch: "two"}
	Overlaps(&out, []ledger.RadarPair{
		{Level: radar.Medium, Commit: two, Other: one},
		{Level: radar.High, Commit: two, Other: one, PathsTotal: 1,
			Paths: []radar.Path{{Path: "f", Level: radar.High, Reason: radar.SameLines}}},
	})
	want := `LEVEL   COMMIT        BRANCH  AUTHOR  WITH          BRANCH  AUTHOR  PATH  REASON
MEDIUM  222222222222  two     -       111111111111  one     -       -     -
HIGH    222222222222  two     -       111111111111  one     -       f     same_lines
`
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", &out, want)
	}
}
