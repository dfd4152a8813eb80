package radarindex

import (
	"bytes"
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/tidwall/btree"
)

// An Index finds the tips of one repo by the paths they change. It is built from
// the commits' change records, and is as current as the latest call of Set.Fresh.
// A caller that must not miss a later tip reads those with a higher Seq itself.
// Its methods are safe for concurrent use.
type Index struct {
	repoID int64

	// These two belong to the Set and are guarded by its lock.
	lastUse int64 // Set.uses when the index was last used
	counted int64 // the size with which Set.size includes the index, in bytes

	// refreshing is the lock of Set.Fresh. It is a channel so that a waiting caller
	// can give up.
	refreshing chan struct{}

	mu sync.RWMutex // guards all fields below
	stats
	entries   map[int64]*entry            // by commit
	paths     btree.Map[string, []change] // by path; a renamed file also has its old path
	dirs      map[string][]change         // by directory of the path, latest last
	oversized map[int64]bool              // commits that are omitted because each is too large
}

// stats describes what an index covers.
type stats struct {
	seq     int64 // the highest Seq that the index has seen
	size    int64 // the approximate size of the index, in bytes
	omitted int64 // the approximate size of the tips omitted for lack of memory, in bytes
}

// An entry is a tip in an index. It is immutable.
type entry struct {
	tip    *Tip
	record []byte   // the packed changes, concatenated
	ends   []uint32 // the offset in record at which each change ends
	size   int64    // the approximate size in bytes, including the references in the index
}

// A change refers to one change of a tip.
type change struct {
	entry *entry
	i     int32 // the index of the change in the entry
}

// The approximate memory, in bytes, that an entry uses in addition to its record
// and its strings.
const (
	entrySize  = 600 // for the entry itself
	parentSize = 60  // for each commit it is built on
	nameSize   = 120 // for each path it names
)

func newIndex(repoID int64) *Index {
	x := &Index{repoID: repoID, refreshing: make(chan struct{}, 1)}
	x.clear()
	return x
}

func (x *Index) clear() {
	x.stats, x.paths = stats{}, btree.Map[string, []change]{}
	x.entries, x.dirs, x.oversized = make(map[int64]*entry), make(map[string][]change), make(map[int64]bool)
}

func newEntry(tip Tip, changes []radar.Change) *entry {
	e := &entry{tip: &tip, ends: make([]uint32, len(changes))}
	var record []byte
	for i := range changes {
		record = radar.AppendPacked(record, &changes[i])
		e.ends[i] = uint32(len(record))
	}
	e.record = bytes.Clone(record) // drops the spare capacity
	e.size = int64(entrySize + len(e.record) + parentSize*(len(tip.Parents)+len(tip.Ancestors)))
	for name := range e.names() {
		e.size += int64(nameSize + len(name) + len(dirOf(name)))
	}
	return e
}

func (c change) packed() radar.PackedChange {
	from := uint32(0)
	if c.i > 0 {
		from = c.entry.ends[c.i-1]
	}
	return c.entry.record[from:c.entry.ends[c.i]]
}

// names yields the paths that the tip changes, each with its change. It yields
// both paths of a renamed file.
func (e *entry) names() iter.Seq2[string, change] {
	return func(yield func(string, change) bool) {
		for i := range e.ends {
			c := change{e, int32(i)}
			path, oldPath := c.packed().Names()
			if !yield(path, c) || oldPath != "" && !yield(oldPath, c) {
				return
			}
		}
	}
}

// dirOf returns the directory of a path with a trailing slash, or "" for the root.
func dirOf(path string) string { return path[:strings.LastIndexByte(path, '/')+1] }

// put adds an entry, in place of any previous entry of the same commit.
func (x *Index) put(e *entry) {
	x.remove(x.entries[e.tip.CommitID])
	x.entries[e.tip.CommitID] = e
	x.size += e.size
	for name, c := range e.names() {
		at, _ := x.paths.Get(name)
		x.paths.Set(name, append(at, c))
		if dir := dirOf(name); dir != "" {
			in, ok := x.dirs[dir]
			if !ok {
				dir = strings.Clone(dir) // the key must not retain the whole path
			}
			x.dirs[dir] = append(in, c)
		}
	}
}

// remove removes entries. It ignores those that are nil.
func (x *Index) remove(entries ...*entry) {
	removed := make(map[*entry]bool, len(entries))
	for _, e := range entries {
		if e != nil {
			removed[e] = true
			delete(x.entries, e.tip.CommitID)
			x.size -= e.size
		}
	}
	filter := func(list []change) []change {
		return slices.DeleteFunc(list, func(c change) bool { return removed[c.entry] })
	}

	done := make(map[string]bool) // filters a path once, however many entries name it
	for e := range removed {
		for name := range e.names() {
			if done[name] {
				continue
			}
			done[name] = true
			at, _ := x.paths.Get(name)
			if at = filter(at); len(at) > 0 {
				x.paths.Set(name, at)
			} else {
				x.paths.Delete(name)
			}

			dir := dirOf(name)
			if dir == "" || done[dir] {
				continue
			}
			done[dir] = true
			if in := filter(x.dirs[dir]); len(in) > 0 {
				x.dirs[dir] = in
			} else {
				delete(x.dirs, dir)
			}
		}
	}
}

// shrink removes the tips that came into flight first until the index takes at
// most limit bytes.
func (x *Index) shrink(limit int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	byPlace := func(a, b *entry) int { return cmp.Compare(a.tip.Place, b.tip.Place) }
	entries := slices.SortedFunc(maps.Values(x.entries), byPlace)
	n, size := 0, x.size
	for ; n < len(entries) && size > limit; n++ {
		size -= entries[n].size
	}
	x.omitted += x.size - size
	x.remove(entries[:n]...)
}

// view calls f with the read lock held.
func (x *Index) view(f func()) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	f()
}

// incomplete reports whether the index omits tips with which other commits should
// be compared. The caller holds the lock.
func (x *Index) incomplete() bool { return x.omitted > 0 || len(x.oversized) > 0 }

// changesAt returns the changes of a path. The caller holds the lock.
func (x *Index) changesAt(path string) []change {
	changes, _ := x.paths.Get(path)
	return changes
}

// changesBelow yields the changes of files below a path, ordered by path. The
// caller holds the lock.
func (x *Index) changesBelow(path string) iter.Seq[change] {
	return func(yield func(change) bool) {
		x.paths.Ascend(path+"/", func(name string, changes []change) bool {
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

// changesIn yields the changes of files in a directory, latest first. The caller
// holds the lock.
func (x *Index) changesIn(dir string) iter.Seq2[int, change] { return slices.Backward(x.dirs[dir]) }

func (x *Index) currentStats() (current stats) {
	x.view(func() { current = x.stats })
	return current
}

// RepoID returns the ID of the repo whose tips are indexed.
func (x *Index) RepoID() int64 { return x.repoID }

// Seq returns the highest Seq that the index has seen, or 0 if it was never
// filled.
func (x *Index) Seq() int64 { return x.currentStats().seq }
