package verify

import (
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/ledgerd/ledgerd/ledger/proof"
)

// Leaves returns the leaves of an entry bundle of the tree of a checkpoint. The tiles must lead
// to the root of the checkpoint. The error is a *FetchError if a tile cannot be read.
func Leaves(c proof.Checkpoint, n int64, bundle []byte, tiles *Tiles) ([]proof.Leaf, error) {
	width := proof.Tile{Level: proof.Entries, N: n}.WidthIn(c.Size)
	records, err := proof.ParseBundle(bundle)
	if err != nil {
		return nil, err
	}
	if len(records) != width {
		return nil, fmt.Errorf("the entry bundle %d has %d records, want %d", n, len(records), width)
	}
	indexes := make([]int64, width)
	for i := range indexes {
		indexes[i] = tlog.StoredHashIndex(0, n*proof.TileWidth+int64(i))
	}
	hashes, err := tlog.TileHashReader(tlog.Tree{N: c.Size, Hash: c.Root}, tiles).ReadHashes(indexes)
	if err != nil {
		return nil, fmt.Errorf("read the tiles of the log: %w", err)
	}

	leaves := make([]proof.Leaf, width)
	for i, record := range records {
		if tlog.RecordHash(record) != hashes[i] {
			return nil, fmt.Errorf("the entry %d is not the one in the tree", n*proof.TileWidth+int64(i))
		}
		if leaves[i], err = proof.ParseRecord(record); err != nil {
			return nil, fmt.Errorf("the entry %d: %w", n*proof.TileWidth+int64(i), err)
		}
	}
	return leaves, nil
}
