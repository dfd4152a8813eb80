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
// the commits' records and reflects what was on disk when Set.Fresh last brought
// it up to date. A caller that must not miss a later tip reads those with a
// higher Seq itself. Its methods may be called concurrently.
type Index struct {
	repoID int64

	// The Set's, under its lock.
	lastUse int64 // the Set's count of uses at the last one
	counted int64 // the size of the index as the Set last counted it

	// refreshing is a lock that Set.Fresh holds. It is a channel so that a waiting
	// caller can give up.
	refreshing chan struct{}

	mu sync.RWMutex // for all fields below
	state
	entries   map[int64]*entry            // by commit
	paths     btree.Map[string, []change] // by path; a renamed file is under its old path too
	dirs      map[string][]change         // by directory of a path, the latest last
	oversized map[int64]bool              // commits whose tips are left out because each is too large
}

// A state is how far an index has come.
type state struct {
	seq     int64 // the highest Seq that the index has seen
	size    int64 // its approximate size in bytes
	omitted int64 // the approximate size, in bytes, of the tips left out for lack of memory
}

// An entry is a tip in an index. It is immutable.
type entry struct {
	tip    *Tip
	record []byte   // its changes, packed, one after the other
	ends   []uint32 // where each change ends in record
	size   int64    // its approximate size in bytes, including its references in the index
}

// A change is one change of a tip.
type change struct {
	entry *entry
	i     int32
}

// The approximate size of an entry, in bytes, in addition to its record and its
// strings: of the entry itself, of each commit it is built on, and of each path
// it names.
const (
	entrySize  = 600
	parentSize = 60
	nameSize   = 120
)

func newIndex(repoID int64) *Index {
	x := &Index{repoID: repoID, refreshing: make(chan struct{}, 1)}
	x.clear()
	return x
}

func (x *Index) clear() {
	x.state, x.paths = state{}, btree.Map[string, []change]{}
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

// names visits the paths that the tip changes, each with its change. A renamed
// file is visited under both its paths.
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

// dirOf returns the directory of a path, with a trailing slash; "" for the root.
func dirOf(path string) string { return path[:strings.LastIndexByte(path, '/')+1] }

// put adds an entry. It replaces the previous entry of the same commit.
func (x *Index) put(e *entry) {
	x.remove(x.entries[e.tip.CommitID])
	x.entries[e.tip.CommitID] = e
	x.size += e.size
	for name, c := range e.names() {
		at, _ := x.paths.Get(name)
		x.paths.Set(name, append(at, c))
		if dir := dirOf(name); dir != "" {
			in, known := x.dirs[dir]
			if !known {
				dir = strings.Clone(dir) // so that the key does not retain the whole path
			}
			x.dirs[dir] = append(in, c)
		}
	}
}

// remove removes entries. It ignores nil.
func (x *Index) remove(entries ...*entry) {
	gone := make(map[*entry]bool, len(entries))
	for _, e := range entries {
		if e != nil {
			gone[e] = true
			delete(x.entries, e.tip.CommitID)
			x.size -= e.size
		}
	}
	without := func(list []change) []change {
		return slices.DeleteFunc(list, func(c change) bool { return gone[c.entry] })
	}
	done := make(map[string]bool) // so that a crowded path is filtered once
	for e := range gone {
		for name := range e.names() {
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

// shrink removes the tips that came into flight first, until the size of the
// index is at most limit bytes.
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

// view calls f under the read lock. The methods that read the maps are called
// within it.
func (x *Index) view(f func()) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	f()
}

// incomplete reports whether the index lacks tips that other commits have to be
// compared with. The caller holds the lock.
func (x *Index) incomplete() bool { return x.omitted > 0 || len(x.oversized) > 0 }

// at returns the changes of a path. The caller holds the lock.
func (x *Index) at(path string) []change {
	changes, _ := x.paths.Get(path)
	return changes
}

// below visits the changes of files below a path, in order of their paths. The
// caller holds the lock.
func (x *Index) below(path string) iter.Seq[change] {
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

// in visits the changes of files in a directory, the latest first. The caller
// holds the lock.
func (x *Index) in(dir string) iter.Seq2[int, change] { return slices.Backward(x.dirs[dir]) }

func (x *Index) current() (now state) {
	x.view(func() { now = x.state })
	return now
}

// RepoID returns the repo whose tips the index holds.
func (x *Index) RepoID() int64 { return x.repoID }

// Seq returns the highest Seq that the index has seen; 0 if it was never filled.
func (x *Index) Seq() int64 { return x.current().seq }
