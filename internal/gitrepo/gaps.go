package gitrepo

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"

	"github.com/ledgerd/ledgerd/ledger/radar"
)

// maxGaps is how many gaps of a hunk are told. The ledger sees by the number of
// a hunk's lines that there were more.
const maxGaps = 512

// Before a line stands lineMark in what is hashed, so that no line of a file
// can pass for what lies outside of it.
const (
	lineMark   = ' '
	beforeMark = "^\n"
	afterMark  = "$\n"
)

// A gapHasher tells where in a file's old content its hunks are, by hashes of
// the lines around the gaps that they cover. It keeps its buffers from one file
// to the next.
type gapHasher struct {
	seed  maphash.Seed
	lines [][]byte
	sums  []uint64 // of the lines: different sums, different lines
	text  []byte

	// groups are the pairs of lines at the covered gaps, each once; byKey finds
	// them by the sums of the two lines.
	groups []pairGroup
	byKey  map[uint64]int
}

// A pairGroup is the covered gaps between two lines that read the same.
type pairGroup struct {
	gap      int // the first of them
	repeated bool
}

func newGapHasher() *gapHasher {
	return &gapHasher{seed: maphash.MakeSeed(), byKey: make(map[uint64]int)}
}

// addHashes sets the near and far hashes of the hunks of one file.
func (h *gapHasher) addHashes(old []byte, hunks []radar.Hunk) {
	h.split(old)
	h.findRepeated(hunks)
	for i := range hunks {
		first, count := coveredGaps(hunks[i])
		hashes := make([]string, 2*count)
		near, far := hashes[:count:count], hashes[count:]
		for k := range count {
			gap := first + k
			far[k] = h.window(gap, 3)
			if !h.isRepeated(gap) {
				near[k] = h.window(gap, 1)
			}
		}
		hunks[i].Near, hunks[i].Far = near, far
	}
}

// coveredGaps returns the first gap that a hunk covers, and how many are told.
// Gap g lies between the old lines g and g+1.
func coveredGaps(hunk radar.Hunk) (first, count int) {
	if hunk.Lines == 0 {
		return hunk.Start, 1
	}
	return hunk.Start - 1, min(hunk.Lines+1, maxGaps)
}

// split takes a file apart into lines without trailing blanks.
func (h *gapHasher) split(content []byte) {
	clear(h.lines) // lets go of the file before
	h.lines, h.sums = h.lines[:0], h.sums[:0]
	for len(content) > 0 {
		line := content
		if end := bytes.IndexByte(content, '\n'); end >= 0 {
			line, content = content[:end], content[end+1:]
		} else {
			content = nil
		}
		line = trimBlanks(line)
		h.lines = append(h.lines, line)
		h.sums = append(h.sums, maphash.Bytes(h.seed, line))
	}
}

// trimBlanks returns the line without trailing blanks. The carriage return of a
// CRLF is one.
func trimBlanks(line []byte) []byte {
	for n := len(line); n > 0; n-- {
		switch line[n-1] {
		case ' ', '\t', '\r', '\v', '\f':
		default:
			return line[:n]
		}
	}
	return line[:0]
}

// findRepeated finds the covered gaps whose two lines stand so at another gap of
// the file too. Sums tell cheaply where to look; only lines tell what is.
func (h *gapHasher) findRepeated(hunks []radar.Hunk) {
	h.groups = h.groups[:0]
	clear(h.byKey)
	for _, hunk := range hunks {
		first, count := coveredGaps(hunk)
		for gap := first; gap < first+count; gap++ {
			if !h.isInside(gap) {
				continue
			}
			group, key := h.find(gap)
			if group == nil {
				h.byKey[key] = len(h.groups)
				h.groups = append(h.groups, pairGroup{gap: gap})
			}
		}
	}
	if len(h.groups) == 0 {
		return
	}
	for gap := 1; gap < len(h.lines); gap++ {
		if group, _ := h.find(gap); group != nil && group.gap != gap {
			group.repeated = true
		}
	}
}

// isInside reports whether the gap has a line on both sides. The others are
// like no other gap.
func (h *gapHasher) isInside(gap int) bool { return gap > 0 && gap < len(h.lines) }

func (h *gapHasher) isRepeated(gap int) bool {
	if !h.isInside(gap) {
		return false
	}
	group, _ := h.find(gap)
	return group != nil && group.repeated
}

// find returns the group of an inside gap, or the free key where it belongs.
// Lines that differ and have the same sums are at the keys after it.
func (h *gapHasher) find(gap int) (*pairGroup, uint64) {
	for key := h.sums[gap-1]*0x9E3779B97F4A7C15 + h.sums[gap]; ; key++ {
		i, taken := h.byKey[key]
		if !taken {
			return nil, key
		}
		if group := &h.groups[i]; h.alike(group.gap, gap) {
			return group, key
		}
	}
}

// alike reports whether two inside gaps are between lines that read the same.
func (h *gapHasher) alike(a, b int) bool {
	return a == b || bytes.Equal(h.lines[a-1], h.lines[b-1]) && bytes.Equal(h.lines[a], h.lines[b])
}

// window returns the hash of the reach lines on each side of a gap.
func (h *gapHasher) window(gap, reach int) string {
	h.text = h.text[:0]
	for i := gap - reach; i < gap+reach; i++ { // from 0
		switch {
		case i < 0:
			h.text = append(h.text, beforeMark...)
		case i >= len(h.lines):
			h.text = append(h.text, afterMark...)
		default:
			h.text = append(h.text, lineMark)
			h.text = append(h.text, h.lines[i]...)
			h.text = append(h.text, '\n')
		}
	}
	sum := sha256.Sum256(h.text)
	return shortHash(sum[:])
}

// shortHash writes a SHA-256 the way change records have it: its first 8 bytes.
func shortHash(sum []byte) string { return hex.EncodeToString(sum[:8]) }
