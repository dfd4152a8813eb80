package proof

import (
	"crypto/sha256"
	"math/bits"

	"golang.org/x/mod/sumdb/tlog"
)

// A Tree computes the tiles and the roots of a log from the hashes of its leaves. It keeps
// only the tiles that are not full. The zero Tree is empty.
type Tree struct {
	size   int64
	levels [][]tlog.Hash // the hashes of each level that are not in a full tile
}

// Size returns the number of leaves.
func (t *Tree) Size() int64 { return t.size }

// Add adds the hash of the next leaf. It calls full for each tile that it fills, from the
// lowest level up.
func (t *Tree) Add(leaf tlog.Hash, full func(tile Tile, hashes []byte) error) error {
	t.size++
	next := leaf
	for level := 0; ; level++ {
		if level == len(t.levels) {
			t.levels = append(t.levels, make([]tlog.Hash, 0, TileWidth))
		}
		t.levels[level] = append(t.levels[level], next)
		if len(t.levels[level]) < TileWidth {
			return nil
		}

		tile := Tile{Level: level, N: t.size>>((level+1)*TileHeight) - 1, Width: TileWidth}
		if err := full(tile, t.Partial(level)); err != nil {
			return err
		}
		next = perfect(t.levels[level])
		t.levels[level] = t.levels[level][:0]
	}
}

// Partial returns the hashes of a level that are not in a full tile.
func (t *Tree) Partial(level int) []byte {
	if level >= len(t.levels) {
		return nil
	}
	hashes := make([]byte, 0, TileWidth*tlog.HashSize)
	for _, hash := range t.levels[level] {
		hashes = append(hashes, hash[:]...)
	}
	return hashes
}

// Root returns the root of the leaves that were added (RFC 6962, section 2.1).
func (t *Tree) Root() tlog.Hash {
	var root tlog.Hash
	isEmpty := true
	for _, hashes := range t.levels { // the lower levels are on the right
		for len(hashes) > 0 {
			rest := len(hashes) - 1<<bits.TrailingZeros(uint(len(hashes)))
			left := perfect(hashes[rest:])
			if root = tlog.NodeHash(left, root); isEmpty {
				root, isEmpty = left, false
			}
			hashes = hashes[:rest]
		}
	}
	if isEmpty {
		return sha256.Sum256(nil)
	}
	return root
}

// perfect returns the root of a tree over hashes, whose number is a power of two.
func perfect(hashes []tlog.Hash) tlog.Hash {
	if len(hashes) == 1 {
		return hashes[0]
	}
	half := len(hashes) / 2
	return tlog.NodeHash(perfect(hashes[:half]), perfect(hashes[half:]))
}
