package verify

import (
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/ledgerd/ledgerd/ledger/proof"
)

// maxTiles is how many tiles a Tiles keeps: 32 MiB.
const maxTiles = 4096

// Tiles reads the tiles of a log, and keeps those that lead to the root of a checkpoint. Tiles
// is not safe for concurrent use.
type Tiles struct {
	// fetch reads a file of the log, such as tile/0/000.
	fetch func(file string) ([]byte, error)
	known map[tlog.Tile][]byte
}

// NewTiles returns a reader of tiles, given how to read a file of the log.
func NewTiles(fetch func(file string) ([]byte, error)) *Tiles {
	return &Tiles{fetch, make(map[tlog.Tile][]byte)}
}

// Height implements tlog.TileReader.
func (t *Tiles) Height() int { return proof.TileHeight }

// ReadTiles implements tlog.TileReader.
func (t *Tiles) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	data := make([][]byte, len(tiles))
	for i, tile := range tiles {
		if data[i] = t.known[tile]; data[i] != nil {
			continue
		}
		path := proof.Tile{Level: tile.L, N: tile.N, Width: tile.W}.Path()
		hashes, err := t.fetch("tile/" + path)
		if err != nil {
			return nil, &FetchError{err}
		}
		if len(hashes) != tile.W*tlog.HashSize {
			return nil, fmt.Errorf("the tile %s has %d bytes, want %d", path, len(hashes), tile.W*tlog.HashSize)
		}
		data[i] = hashes
	}
	return data, nil
}

// SaveTiles implements tlog.TileReader.
func (t *Tiles) SaveTiles(tiles []tlog.Tile, data [][]byte) {
	if len(t.known)+len(tiles) > maxTiles {
		clear(t.known)
	}
	for i, tile := range tiles[:min(len(tiles), maxTiles)] {
		t.known[tile] = data[i]
	}
}

// A FetchError says that a file of the log cannot be read. It proves nothing about the log.
type FetchError struct{ Err error }

func (e *FetchError) Error() string { return "read the log: " + e.Err.Error() }

func (e *FetchError) Unwrap() error { return e.Err }

// rootOf returns the root hash of the first size leaves of the tree of a checkpoint. The
// tiles must lead to the root of the checkpoint.
func rootOf(size int64, c proof.Checkpoint, tiles *Tiles) (tlog.Hash, error) {
	if size == c.Size {
		return c.Root, nil
	}
	root, err := tlog.TreeHash(size, tlog.TileHashReader(tlog.Tree{N: c.Size, Hash: c.Root}, tiles))
	if err != nil {
		return root, fmt.Errorf("compute the root of the first %d events from the tiles of the log: %w", size, err)
	}
	return root, nil
}
