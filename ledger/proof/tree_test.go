package proof

import (
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/ledgerd/ledgerd/internal/must"
)

// A tree has the roots and tiles that package tlog computes from all hashes.
func TestTree(t *testing.T) {
	const size = TileWidth*TileWidth + 3*TileWidth + 5
	all := &tree{}
	var got Tree
	if want, err := tlog.TreeHash(0, all); err != nil || got.Root() != want {
		t.Errorf("the root of no leaves is %v, want %v", got.Root(), want)
	}

	tiles := 0
	full := func(tile Tile, hashes []byte) error {
		tiles++
		want, err := tlog.ReadTileData(tlog.Tile{H: TileHeight, L: tile.Level, N: tile.N, W: TileWidth}, all)
		if err != nil || string(hashes) != string(want) || tile.Width != TileWidth {
			t.Fatalf("tile %s of %d leaves differs: %v", tile.Path(), got.Size(), err)
		}
		return nil
	}
	for n := range int64(size) {
		leaf := leafOf(n).LeafHash()
		hashes, err := tlog.StoredHashesForRecordHash(n, leaf, all)
		must.OK(t, err)
		all.hashes = append(all.hashes, hashes...)
		must.OK(t, got.Add(leaf, full))
		if n < 1100 || n > size-300 {
			want, err := tlog.TreeHash(n+1, all)
			must.OK(t, err)
			if root := got.Root(); root != want {
				t.Fatalf("the root of %d leaves is %v, want %v", n+1, root, want)
			}
		}
	}

	if want := TileWidth + 3 + 1; tiles != want || got.Size() != size {
		t.Errorf("%d leaves have %d full tiles, want %d", got.Size(), tiles, want)
	}
	for level, want := range []int{5, 3, 1, 0} {
		if got := len(got.Partial(level)) / tlog.HashSize; got != want {
			t.Errorf("the partial tile of level %d has %d hashes, want %d", level, got, want)
		}
	}
}
