package radar

import (
	"cmp"
	"hash/fnv"
	"io"
	"slices"
	"strconv"
)

const maxRanges = 20 // of a path, per side

// A file is a change, indexed for comparison. Texts that are only compared for equality
// are stored as hashes; 0 means none.
type file struct {
	path, oldPath, status string
	oldMode, mode         uint32
	oldBlob, blob         uint64
	binary                bool

	regions  []region  // ordered by position
	headings []heading // ordered by function
	near     []gapHash // ordered by hash, distinct
	far      []gapHash // likewise
}

// A region is a hunk, as the range of gaps between lines that it covers.
type region struct {
	first, last         int
	start, lines, added int
	text, function      uint64   // hashes; 0 for none
	near, far           []uint64 // hashes of gaps; 0 if not unique
}

// A heading is the function that contains a hunk.
type heading struct {
	function uint64
	region   int // index
}

// A gapHash is the hash of the lines around one gap.
type gapHash struct {
	hash   uint64
	region int // index
}

// newFile indexes a change for comparison.
func newFile(c *Change) *file {
	f := regionsOf(c)
	f.index()
	return f
}

// regionsOf is newFile without the indexes. The regions are in the order of the change's
// hunks.
func regionsOf(c *Change) *file {
	f := &file{
		path: c.Path, oldPath: c.OldPath, status: c.Status, oldMode: parseMode(c.OldMode), mode: parseMode(c.Mode),
		oldBlob: hashOf(c.OldBlob), blob: hashOf(c.Blob), binary: c.Binary, regions: make([]region, len(c.Hunks)),
	}

	gaps := 0
	for i := range c.Hunks {
		gaps += len(c.Hunks[i].Near) + len(c.Hunks[i].Far)
	}
	hashes := make([]uint64, 0, gaps)
	for i := range c.Hunks {
		h := &c.Hunks[i]
		s := newRegion(h.Start, h.Lines, h.Added)
		s.text, s.function = parseHash(h.Text), hashOf(h.Function)
		for _, text := range h.Near {
			hashes = append(hashes, parseHash(text))
		}
		s.near = hashes[len(hashes)-len(h.Near):]
		for _, text := range h.Far {
			hashes = append(hashes, parseHash(text))
		}
		s.far = hashes[len(hashes)-len(h.Far):]
		f.regions[i] = s
	}
	return f
}

func newRegion(start, lines, added int) region {
	h := Hunk{Start: start, Lines: lines}
	return region{first: h.firstGap(), last: h.lastGap(), start: start, lines: lines, added: added}
}

// parseHash parses a hash of 16 hex digits. It returns 0 for anything else.
func parseHash(text string) uint64 {
	hash, err := strconv.ParseUint(text, 16, 64)
	if err != nil {
		return 0
	}
	return hash
}

// parseMode parses a mode of octal digits. It returns 0 for anything else.
func parseMode(text string) uint32 {
	mode, err := strconv.ParseUint(text, 8, 32)
	if err != nil {
		return 0
	}
	return uint32(mode)
}

// hashOf returns the hash of a text, or 0 if it is empty.
func hashOf(text string) uint64 {
	if text == "" {
		return 0
	}
	h := fnv.New64a()
	_, _ = io.WriteString(h, text)
	return h.Sum64()
}

// index sorts the regions and builds the indexes.
func (f *file) index() {
	slices.SortFunc(f.regions, func(s, t region) int { return s.first - t.first })
	near, far := 0, 0
	for i := range f.regions {
		near, far = near+len(f.regions[i].near), far+len(f.regions[i].far)
	}
	f.headings = make([]heading, 0, len(f.regions))
	f.near, f.far = make([]gapHash, 0, near), make([]gapHash, 0, far)
	for i := range f.regions {
		s := &f.regions[i]
		if s.function != 0 {
			f.headings = append(f.headings, heading{s.function, i})
		}
		f.near, f.far = appendHashes(f.near, s.near, i), appendHashes(f.far, s.far, i)
	}
	slices.SortFunc(f.headings, func(a, b heading) int {
		return cmp.Or(cmp.Compare(a.function, b.function), a.region-b.region)
	})
	f.near, f.far = unique(f.near), unique(f.far)
}

func appendHashes(to []gapHash, hashes []uint64, region int) []gapHash {
	for _, hash := range hashes {
		if hash != 0 {
			to = append(to, gapHash{hash, region})
		}
	}
	return to
}

// unique sorts hashes and removes those that occur more than once, because they identify
// no region.
func unique(hashes []gapHash) []gapHash {
	slices.SortFunc(hashes, func(a, b gapHash) int { return cmp.Compare(a.hash, b.hash) })
	distinct := hashes[:0]
	for i := 0; i < len(hashes); {
		j := i + 1
		for j < len(hashes) && hashes[j].hash == hashes[i].hash {
			j++
		}
		if j == i+1 {
			distinct = append(distinct, hashes[i])
		}
		i = j
	}
	return distinct
}

// sameOldBlob reports whether both change the same blob, so that their line numbers are
// comparable.
func (f *file) sameOldBlob(other *file) bool { return f.oldBlob != 0 && f.oldBlob == other.oldBlob }

// isTruncated reports whether any hunk has fewer hashes than gaps.
func (f *file) isTruncated() bool {
	return slices.ContainsFunc(f.regions, func(s region) bool { return s.lines+1 > len(s.far) })
}

func (f *file) without(regions []int) *file {
	if len(regions) == 0 {
		return f
	}
	remove := make(map[int]bool, len(regions))
	for _, i := range regions {
		remove[i] = true
	}
	rest := new(file)
	*rest = *f
	rest.regions = nil
	for i, s := range f.regions {
		if !remove[i] {
			rest.regions = append(rest.regions, s)
		}
	}
	rest.index()
	return rest
}

// ranges returns the old lines of the given regions, at most maxRanges of them.
func (f *file) ranges(regions []int) []LineRange {
	slices.Sort(regions)
	regions = slices.Compact(regions)
	ranges := make([]LineRange, min(len(regions), maxRanges))
	for i := range ranges {
		s := f.regions[regions[i]]
		ranges[i] = LineRange{s.start, s.lines}
	}
	return ranges
}

// allRanges returns the old lines of all regions, at most maxRanges of them.
func (f *file) allRanges() []LineRange {
	ranges := make([]LineRange, min(len(f.regions), maxRanges))
	for i := range ranges {
		ranges[i] = LineRange{f.regions[i].start, f.regions[i].lines}
	}
	return ranges
}
