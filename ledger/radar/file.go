package radar

import (
	"cmp"
	"hash/fnv"
	"io"
	"slices"
	"strconv"
)

const maxRanges = 20 // of one path on one side

// A file is a change made ready to be compared. Texts of which Compare asks only
// whether they are the same stand in it as their hashes, 0 for none.
type file struct {
	path, oldPath, status string
	oldMode, mode         uint32
	oldBlob, blob         uint64
	binary                bool

	places []place   // in order of place
	by     []heading // in order of function
	near   []gapHash // in order of hash, each once
	far    []gapHash // likewise
}

// A place is a hunk as the gaps between lines that it covers.
type place struct {
	first, last         int
	start, lines, added int
	text, function      uint64   // hashes; 0 for none
	near, far           []uint64 // hashes of gaps; 0 where one is not unique
}

// A heading is a function that a hunk stands in.
type heading struct {
	function uint64
	place    int // index
}

// A gapHash is the hash of the lines around one gap.
type gapHash struct {
	hash  uint64
	place int // index
}

// newFile makes a change ready to be compared.
func newFile(c *Change) *file {
	f := placesOf(c)
	f.index()
	return f
}

// placesOf is newFile without the tables that index makes: the places stand in
// the order of the change's hunks.
func placesOf(c *Change) *file {
	f := &file{
		path: c.Path, oldPath: c.OldPath, status: c.Status, oldMode: parseMode(c.OldMode), mode: parseMode(c.Mode),
		oldBlob: hashOf(c.OldBlob), blob: hashOf(c.Blob), binary: c.Binary, places: make([]place, len(c.Hunks)),
	}
	gaps := 0
	for i := range c.Hunks {
		gaps += len(c.Hunks[i].Near) + len(c.Hunks[i].Far)
	}
	hashes := make([]uint64, 0, gaps)
	for i := range c.Hunks {
		h := &c.Hunks[i]
		s := newPlace(h.Start, h.Lines, h.Added)
		s.text, s.function = parseHash(h.Text), hashOf(h.Function)
		for _, text := range h.Near {
			hashes = append(hashes, parseHash(text))
		}
		s.near = hashes[len(hashes)-len(h.Near):]
		for _, text := range h.Far {
			hashes = append(hashes, parseHash(text))
		}
		s.far = hashes[len(hashes)-len(h.Far):]
		f.places[i] = s
	}
	return f
}

func newPlace(start, lines, added int) place {
	h := Hunk{Start: start, Lines: lines}
	return place{first: h.firstGap(), last: h.lastGap(), start: start, lines: lines, added: added}
}

// parseHash reads a hash of 16 hex digits; anything else is none.
func parseHash(text string) uint64 {
	hash, err := strconv.ParseUint(text, 16, 64)
	if err != nil {
		return 0
	}
	return hash
}

// parseMode reads a mode of octal digits; anything else is none.
func parseMode(text string) uint32 {
	mode, err := strconv.ParseUint(text, 8, 32)
	if err != nil {
		return 0
	}
	return uint32(mode)
}

// hashOf returns a hash of a text; 0 for an empty one.
func hashOf(text string) uint64 {
	if text == "" {
		return 0
	}
	h := fnv.New64a()
	_, _ = io.WriteString(h, text)
	return h.Sum64()
}

// index puts the places in order and makes the tables by which they are found.
func (f *file) index() {
	slices.SortFunc(f.places, func(s, t place) int { return s.first - t.first })
	near, far := 0, 0
	for i := range f.places {
		near, far = near+len(f.places[i].near), far+len(f.places[i].far)
	}
	f.by = make([]heading, 0, len(f.places))
	f.near, f.far = make([]gapHash, 0, near), make([]gapHash, 0, far)
	for i := range f.places {
		s := &f.places[i]
		if s.function != 0 {
			f.by = append(f.by, heading{s.function, i})
		}
		f.near, f.far = appendHashes(f.near, s.near, i), appendHashes(f.far, s.far, i)
	}
	slices.SortFunc(f.by, func(a, b heading) int {
		return cmp.Or(cmp.Compare(a.function, b.function), a.place-b.place)
	})
	f.near, f.far = unique(f.near), unique(f.far)
}

func appendHashes(to []gapHash, hashes []uint64, place int) []gapHash {
	for _, hash := range hashes {
		if hash != 0 {
			to = append(to, gapHash{hash, place})
		}
	}
	return to
}

// unique sorts hashes and leaves out those that occur more than once: they tell
// no place.
func unique(hashes []gapHash) []gapHash {
	slices.SortFunc(hashes, func(a, b gapHash) int { return cmp.Compare(a.hash, b.hash) })
	kept := hashes[:0]
	for i := 0; i < len(hashes); {
		j := i + 1
		for j < len(hashes) && hashes[j].hash == hashes[i].hash {
			j++
		}
		if j == i+1 {
			kept = append(kept, hashes[i])
		}
		i = j
	}
	return kept
}

// startsWith reports whether both change the very same blob, so that their line
// numbers mean the same.
func (f *file) startsWith(other *file) bool { return f.oldBlob != 0 && f.oldBlob == other.oldBlob }

// isCut reports whether some hunk covers more gaps than it has hashes of.
func (f *file) isCut() bool {
	return slices.ContainsFunc(f.places, func(s place) bool { return s.lines+1 > len(s.far) })
}

func (f *file) without(places []int) *file {
	if len(places) == 0 {
		return f
	}
	left := make(map[int]bool, len(places))
	for _, i := range places {
		left[i] = true
	}
	rest := new(file)
	*rest = *f
	rest.places = nil
	for i, s := range f.places {
		if !left[i] {
			rest.places = append(rest.places, s)
		}
	}
	rest.index()
	return rest
}

// ranges returns the first of the old lines of these places.
func (f *file) ranges(places []int) []LineRange {
	slices.Sort(places)
	places = slices.Compact(places)
	ranges := make([]LineRange, min(len(places), maxRanges))
	for i := range ranges {
		s := f.places[places[i]]
		ranges[i] = LineRange{s.start, s.lines}
	}
	return ranges
}

// allRanges returns the first of the old lines of all places.
func (f *file) allRanges() []LineRange {
	ranges := make([]LineRange, min(len(f.places), maxRanges))
	for i := range ranges {
		ranges[i] = LineRange{f.places[i].start, f.places[i].lines}
	}
	return ranges
}
