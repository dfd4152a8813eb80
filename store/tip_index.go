package store

import (
	"bytes"
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/btree"

	"github.com/ledgerd/ledgerd/ledger"
)

// A tipIndex finds the tips of one repo by what they change. It is made from
// the records of the commits, and holds nothing but what was on disk when it was
// last refreshed: whoever looks for a registration in the writer adds what came
// since.
type tipIndex struct {
	repoID int64
	// used and counted are the tipIndexSet's: when it was asked for last, and as
	// how many bytes it counts.
	used    int64
	counted int64
	// refreshing holds one while somebody brings it up to date.
	refreshing chan struct{}

	mu sync.RWMutex // for all below
	indexState
	tips  map[int64]*indexedTip
	paths btree.Map[string, []tipChange] // old names of renamed files too
	dirs  map[string][]tipChange         // by the directory of a path, the latest last
	big   map[int64]bool                 // tips that are left out because each takes too much
}

// An indexState tells how far an index is.
type indexState struct {
	seq  int64 // the number of the last tip that it has seen
	size int64 // about how many bytes it takes
	left int64 // about how many bytes of tips were left out of it, for want of room
}

// An indexedTip is a tip in the index. It does not change.
type indexedTip struct {
	row    *tipRow
	record []byte   // what it changes, packed, one behind the other
	ends   []uint32 // where each of them ends
	size   int64    // about how many bytes it takes, with its places in the index
}

// A tipChange is one of the changes of a tip.
type tipChange struct {
	tip *indexedTip
	i   int32
}

// What a tip takes in the index, about, beside its record and its texts: itself,
// each commit that it is built on, and each path that it names.
const (
	tipSize    = 600
	parentSize = 60
	nameSize   = 120
)

func newTipIndex(repoID int64) *tipIndex {
	x := &tipIndex{repoID: repoID, refreshing: make(chan struct{}, 1)}
	x.clear()
	return x
}

func (x *tipIndex) clear() {
	x.indexState, x.paths = indexState{}, btree.Map[string, []tipChange]{}
	x.tips, x.dirs, x.big = make(map[int64]*indexedTip), make(map[string][]tipChange), make(map[int64]bool)
}

func newIndexedTip(row tipRow, changes []ledger.Change) *indexedTip {
	t := &indexedTip{row: &row, ends: make([]uint32, len(changes))}
	var record []byte
	for i := range changes {
		record = ledger.AppendPacked(record, &changes[i])
		t.ends[i] = uint32(len(record))
	}
	t.record = bytes.Clone(record) // without the room that it grew by
	t.size = int64(tipSize + len(t.record) + parentSize*(len(row.Parents)+len(row.Ancestors)))
	for name := range t.names() {
		t.size += int64(nameSize + len(name) + len(dirOf(name)))
	}
	return t
}

func (c tipChange) packed() ledger.PackedChange {
	from := uint32(0)
	if c.i > 0 {
		from = c.tip.ends[c.i-1]
	}
	return c.tip.record[from:c.tip.ends[c.i]]
}

// names visits the paths that the tip names, each with the change that does.
func (t *indexedTip) names() iter.Seq2[string, tipChange] {
	return func(yield func(string, tipChange) bool) {
		for i := range t.ends {
			c := tipChange{t, int32(i)}
			path, oldPath := c.packed().Names()
			if !yield(path, c) || oldPath != "" && !yield(oldPath, c) {
				return
			}
		}
	}
}

// dirOf returns the directory of a path with a slash at its end; "" for the root.
func dirOf(path string) string { return path[:strings.LastIndexByte(path, '/')+1] }

// put puts a tip into the index, in the place of what was known of it.
func (x *tipIndex) put(t *indexedTip) {
	x.remove(x.tips[t.row.commitID])
	x.tips[t.row.commitID] = t
	x.size += t.size
	for name, c := range t.names() {
		at, _ := x.paths.Get(name)
		x.paths.Set(name, append(at, c))
		if dir := dirOf(name); dir != "" {
			in, known := x.dirs[dir]
			if !known {
				dir = strings.Clone(dir) // not the whole path with it
			}
			x.dirs[dir] = append(in, c)
		}
	}
}

// remove takes tips out of the index; nil is none.
func (x *tipIndex) remove(tips ...*indexedTip) {
	gone := make(map[*indexedTip]bool, len(tips))
	for _, t := range tips {
		if t != nil {
			gone[t] = true
			delete(x.tips, t.row.commitID)
			x.size -= t.size
		}
	}
	without := func(list []tipChange) []tipChange {
		return slices.DeleteFunc(list, func(c tipChange) bool { return gone[c.tip] })
	}
	done := make(map[string]bool) // a crowded path is filtered once
	for t := range gone {
		for name := range t.names() {
			if done[name] {
				continue
			}
			done[name] = true
			at, _ := x.paths.Get(name)
			if at = without(at); len(at) > 0 {
				x.paths.Set(name, at)
			} else {
				x.paths.Delete(name)
			}
			dir := dirOf(name)
			if dir == "" || done[dir] {
				continue
			}
			done[dir] = true
			if in := without(x.dirs[dir]); len(in) > 0 {
				x.dirs[dir] = in
			} else {
				delete(x.dirs, dir)
			}
		}
	}
}

// shrink leaves out the tips that came into flight first until the index takes
// limit bytes at most.
func (x *tipIndex) shrink(limit int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	tips := slices.SortedFunc(maps.Values(x.tips), func(a, b *indexedTip) int { return cmp.Compare(a.row.place, b.row.place) })
	left, size := 0, x.size
	for ; left < len(tips) && size > limit; left++ {
		size -= tips[left].size
	}
	x.left += x.size - size
	x.remove(tips[:left]...)
}

// view calls f while nothing in the index changes. The methods below are for
// that.
func (x *tipIndex) view(f func()) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	f()
}

// leavesOut reports whether there are tips that the index does not hold.
func (x *tipIndex) leavesOut() bool { return x.left > 0 || len(x.big) > 0 }

// at returns what tips change at a path.
func (x *tipIndex) at(path string) []tipChange {
	changes, _ := x.paths.Get(path)
	return changes
}

// below visits what tips change below a path, in order of path.
func (x *tipIndex) below(path string) iter.Seq[tipChange] {
	return func(yield func(tipChange) bool) {
		x.paths.Ascend(path+"/", func(name string, changes []tipChange) bool {
			if !strings.HasPrefix(name, path+"/") {
				return false
			}
			for _, c := range changes {
				if !yield(c) {
					return false
				}
			}
			return true
		})
	}
}

// in visits what tips change in a directory, the latest first.
func (x *tipIndex) in(dir string) iter.Seq2[int, tipChange] { return slices.Backward(x.dirs[dir]) }

func (x *tipIndex) state() (state indexState) {
	x.view(func() { state = x.indexState })
	return state
}
