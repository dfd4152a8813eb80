package proof

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

// TileHeight is the height of tiles, and TileWidth the number of hashes of a full one.
const (
	TileHeight = 8
	TileWidth  = 1 << TileHeight
)

// Entries is the level of entry bundles, which hold the records of a tile of level 0.
const Entries = -1

// maxLevel is the highest level of a tile in a path.
const maxLevel = 63

// A Tile names a tile or an entry bundle of a log.
type Tile struct {
	Level int // Entries, or 0 to 63
	N     int64
	Width int // 1 to TileWidth
}

var errTilePath = errors.New("use <level>/<number>, such as 0/x001/234, or 0/x001/234.p/56 for a partial tile")

// ParseTile parses the path of a tile after "tile/", such as 0/x001/234.p/56. It accepts
// only what Path writes.
func ParseTile(path string) (Tile, error) {
	level, rest, ok := strings.Cut(path, "/")
	t := Tile{Level: Entries, Width: TileWidth}
	if !ok {
		return t, errTilePath
	}
	if level != "entries" {
		n, err := strconv.Atoi(level)
		if err != nil || n < 0 || n > maxLevel {
			return t, errTilePath
		}
		t.Level = n
	}

	rest, width, ok := strings.Cut(rest, ".p/")
	if ok {
		n, err := strconv.Atoi(width)
		if err != nil || n < 1 || n >= TileWidth {
			return t, errTilePath
		}
		t.Width = n
	}

	for element := range strings.SplitSeq(rest, "/") {
		n, err := strconv.Atoi(strings.TrimPrefix(element, "x"))
		if err != nil || n < 0 || n > 999 || t.N > (math.MaxInt64>>TileHeight)/1000-1 {
			return t, errTilePath
		}
		t.N = t.N*1000 + int64(n)
	}
	if t.Path() != path {
		return t, errTilePath
	}
	return t, nil
}

// Path returns the path of the tile after "tile/".
func (t Tile) Path() string {
	path := fmt.Sprintf("%03d", t.N%1000)
	for n := t.N / 1000; n > 0; n /= 1000 {
		path = fmt.Sprintf("x%03d/%s", n%1000, path)
	}
	level := "entries"
	if t.Level != Entries {
		level = strconv.Itoa(t.Level)
	}
	path = level + "/" + path
	if t.Width < TileWidth {
		path += ".p/" + strconv.Itoa(t.Width)
	}
	return path
}

// WidthIn returns the number of hashes that a tile has in a tree of the given size: 0 if
// the tree has no such tile.
func (t Tile) WidthIn(size int64) int {
	shift := max(t.Level, 0) * TileHeight
	if shift > 62 {
		return 0
	}
	return int(min(max((size>>shift)-t.N*TileWidth, 0), TileWidth))
}

// Root returns the hash of a full tile's hashes, which the tile above has.
func Root(hashes []byte) (tlog.Hash, error) {
	if len(hashes) != TileWidth*tlog.HashSize {
		return tlog.Hash{}, fmt.Errorf("a tile has %d bytes, want %d", len(hashes), TileWidth*tlog.HashSize)
	}
	level := make([]tlog.Hash, TileWidth)
	for i := range level {
		level[i] = tlog.Hash(hashes[i*tlog.HashSize:])
	}
	for ; len(level) > 1; level = level[:len(level)/2] {
		for i := range len(level) / 2 {
			level[i] = tlog.NodeHash(level[2*i], level[2*i+1])
		}
	}
	return level[0], nil
}

// AppendEntry appends a record to an entry bundle.
func AppendEntry(bundle, record []byte) []byte {
	bundle = binary.BigEndian.AppendUint16(bundle, uint16(len(record)))
	return append(bundle, record...)
}

// ParseBundle parses an entry bundle, and returns its records.
func ParseBundle(bundle []byte) ([][]byte, error) {
	var records [][]byte
	for len(bundle) > 0 {
		if len(bundle) < 2 {
			return nil, errors.New("the entry bundle ends within a length")
		}
		size := int(binary.BigEndian.Uint16(bundle))
		bundle = bundle[2:]
		if len(bundle) < size {
			return nil, errors.New("the entry bundle ends within a record")
		}
		if len(records) == TileWidth {
			return nil, fmt.Errorf("the entry bundle has more than %d records", TileWidth)
		}
		records, bundle = append(records, bundle[:size]), bundle[size:]
	}
	return records, nil
}
