package gitrepo

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"

	"github.com/ledgerd/ledgerd/ledger/radar"
)

// maxGaps limits how many gaps of a hunk are hashed. The ledger knows from the
// hunk's number of lines that there were more.
const maxGaps = 512

// The hashed text has lineMark before each line of the file. So no line can be
// mistaken for beforeMark or afterMark, which stand for lines outside the file.
const (
	lineMark   = ' '
	beforeMark = "^\n"
	afterMark  = "$\n"
)

// A gapHasher identifies the positions of hunks in a file's old content by hashes
// of the lines around the gaps that they cover. It reuses its buffers for the next
// file.
type gapHasher struct {
	seed  maphash.Seed
	lines [][]byte
	sums  []uint64 // of the lines: lines with different sums differ
	text  []byte

	// groups has an entry for each distinct pair of lines at a covered gap. byKey
	// maps the sums of the two lines to its index.
	groups []pairGroup
	byKey  map[uint64]int
}

// A pairGroup stands for all gaps between the same two lines.
type pairGroup struct {
	gap      int  // the first covered one
	repeated bool // the file has other gaps between these lines
}

func newGapHasher() *gapHasher {
	return &gapHasher{seed: maphash.MakeSeed(), byKey: make(map[uint64]int)}
}

// addHashes sets the near and far hashes of a file's hunks from its old content.
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

// coveredGaps returns the first gap that a hunk covers, and how many to hash. Gap g
// lies between the old lines g and g+1.
func coveredGaps(hunk radar.Hunk) (first, count int) {
	if hunk.Lines == 0 {
		return hunk.Start, 1
	}
	return hunk.Start - 1, min(hunk.Lines+1, maxGaps)
}

// split splits a file into lines without trailing white space.
func (h *gapHasher) split(content []byte) {
	clear(h.lines) // release the previous file
	h.lines, h.sums = h.lines[:0], h.sums[:0]
	for len(content) > 0 {
		line := content
		if end := bytes.IndexByte(content, '\n'); end >= 0 {
			line, content = content[:end], content[end+1:]
		} else {
			content = nil
		}
		line = trimSpaceRight(line)
		h.lines = append(h.lines, line)
		h.sums = append(h.sums, maphash.Bytes(h.seed, line))
	}
}

// trimSpaceRight returns the line without trailing white space, including the
// carriage return of a CRLF.
func trimSpaceRight(line []byte) []byte {
	for n := len(line); n > 0; n-- {
		switch line[n-1] {
		case ' ', '\t', '\r', '\v', '\f':
		default:
			return line[:n]
		}
	}
	return line[:0]
}

// findRepeated finds the covered gaps whose pair of lines occurs at another gap of
// the file too. It looks pairs up by their sums, then compares the lines.
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

// isInside reports whether the gap has a line on both sides. Other gaps are unique.
func (h *gapHasher) isInside(gap int) bool { return gap > 0 && gap < len(h.lines) }

func (h *gapHasher) isRepeated(gap int) bool {
	if !h.isInside(gap) {
		return false
	}
	group, _ := h.find(gap)
	return group != nil && group.repeated
}

// find returns the group of an inside gap and its key. For a new gap, the group is nil
// and the key is unused. If the sums of pairs collide, each further pair has
// the next key.
func (h *gapHasher) find(gap int) (*pairGroup, uint64) {
	for key := h.sums[gap-1]*0x9E3779B97F4A7C15 + h.sums[gap]; ; key++ {
		i, ok := h.byKey[key]
		if !ok {
			return nil, key
		}
		if group := &h.groups[i]; h.samePair(group.gap, gap) {
			return group, key
		}
	}
}

// samePair reports whether two inside gaps lie between the same two lines.
func (h *gapHasher) samePair(a, b int) bool {
	return a == b || bytes.Equal(h.lines[a-1], h.lines[b-1]) && bytes.Equal(h.lines[a], h.lines[b])
}

// window returns the hash of n lines on each side of a gap.
func (h *gapHasher) window(gap, n int) string {
	h.text = h.text[:0]
	for i := gap - n; i < gap+n; i++ { // i counts from 0
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

// shortHash returns the first 8 bytes of a SHA-256 in hex, the form that change
// records use.
func shortHash(sum []byte) string { return hex.EncodeToString(sum[:8]) }
