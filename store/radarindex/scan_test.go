package radarindex

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy/conflicts"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// ScanBlocking finds each earlier tip that overlaps with a commit at the level or above, and no others.
func TestScanBlockingFindsWhatBlocks(t *testing.T) {
	names := []string{"a", "d/a", "d/b", "d/e/f", "d/e"}
	testenv.Check(t, func(t *rapid.T) {
		settings := conflicts.Settings{Enabled: true, Block: rapid.SampledFrom([]radar.Level{
			radar.Low, radar.Medium, radar.High}).Draw(t, "block")}
		x, changes := newIndex(1), map[int64][]radar.Change{}
		const tips = 6
		for id := range int64(tips) {
			changes[id] = drawChanges(t, names)
			x.put(newEntry(Tip{CommitID: id, Place: id, Flight: InFlight}, changes[id]))
		}

		own := Tip{CommitID: 3, Place: 3, Flight: InFlight}
		scan := x.ScanBlocking(settings, own, ledger.Registration{Changes: changes[own.CommitID]}, 0)
		var got, want []int64
		for _, m := range scan.Matches {
			got = append(got, m.CommitID)
		}
		for id := range own.Place {
			if o := radar.Compare(scan.Footprint, scan.FootprintOf(changes[id]), radar.Options{}); o.Level >= settings.Block {
				want = append(want, id)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) || scan.More {
			t.Errorf("%v block at %s, want %v; more: %t", got, settings.Block, want, scan.More)
		}
	})
}
