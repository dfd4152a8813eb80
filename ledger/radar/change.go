package radar

import (
	"fmt"
	"path"
	"strings"

	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// A Change describes what a commit changes at one path, without its content.
type Change struct {
	Path    string `json:"path"`
	OldPath string `json:"old_path,omitzero"`
	// Status is A, M, D, R or T, as in git diff-tree.
	Status  string `json:"status"`
	OldMode string `json:"old_mode,omitzero"`
	Mode    string `json:"mode,omitzero"`
	OldBlob string `json:"old_blob,omitzero"`
	Blob    string `json:"blob,omitzero"`
	Binary  bool   `json:"binary,omitzero"`
	Hunks   []Hunk `json:"hunks,omitempty"`
}

// A Hunk is a range of lines of a text file that a commit replaces. Start and Lines are
// the range in the old file, and Added is the number of new lines. Lines appear only as
// hashes.
type Hunk struct {
	Start int `json:"start"`
	Lines int `json:"lines"`
	Added int `json:"added"`
	// Text is the hash of the new lines.
	Text string `json:"text,omitzero"`
	// Function is the heading that git diff prints for the hunk.
	Function string `json:"function,omitzero"`
	// Near holds, for each gap between old lines that the hunk covers, the hash of the
	// line before and the line after the gap. Far is the same with three lines on each
	// side. A hash is empty if it is not unique in the file.
	Near []string `json:"near,omitempty"`
	Far  []string `json:"far,omitempty"`
}

// The limits of a change record.
const (
	maxChanges  = 10_000
	maxGaps     = 512 // near and far entries in a hunk
	maxPathLen  = 4096
	maxSegments = 256    // in a path
	maxDirs     = 50_000 // distinct directories above the paths
	maxHeading  = 1024
	maxLine     = 1<<31 - 1
)

// CheckChanges returns the first fault in a change record, and its field relative to the
// list. Both are empty if the record is valid.
func CheckChanges(changes []Change) (field, fault string) {
	if len(changes) > maxChanges {
		return "", fmt.Sprintf("too many: %d entries, at most %d", len(changes), maxChanges)
	}
	names := recordNames{paths: make(map[string]bool, len(changes)), dirs: make(map[string]bool)}
	for i, c := range changes {
		field, fault := c.fault()
		if fault == "" {
			field, fault = names.add(c)
		}
		if fault != "" {
			return text.Entry("", i) + "." + field, fault
		}
		if len(names.dirs) > maxDirs {
			return "", fmt.Sprintf("too many directories above the paths: at most %d", maxDirs)
		}
	}
	return "", ""
}

// recordNames holds the paths in a record, including the old paths of renames, and the
// directories above them.
type recordNames struct{ paths, dirs map[string]bool }

// add adds the paths of a change. A path that is already in the record is a fault,
// because the result would depend on the order of the changes. In git diff-tree, each
// path occurs once: without -B it pairs only deleted with new files, and reports two
// swapped files as modified.
func (n recordNames) add(c Change) (field, fault string) {
	for _, name := range [...]struct{ field, path string }{{"old_path", c.OldPath}, {"path", c.Path}} {
		if name.path == "" {
			continue
		}
		if n.paths[name.path] {
			return name.field, text.Quote(name.path) + " occurs in an earlier change (list each path once, like git " +
				"diff-tree without -B)"
		}
		n.paths[name.path] = true
		n.addAbove(name.path)
	}
	return "", ""
}

func (n recordNames) addAbove(name string) {
	for i := strings.LastIndexByte(name, '/'); i >= 0 && len(n.dirs) <= maxDirs; i = strings.LastIndexByte(name[:i], '/') {
		if n.dirs[name[:i]] {
			return // so are all above it
		}
		n.dirs[name[:i]] = true
	}
}

// fault returns the first invalid member of the change and why it is invalid.
func (c Change) fault() (field, message string) {
	renamed := c.Status == "R"
	switch {
	case !isTreePath(c.Path):
		return "path", notTreePath(c.Path)
	case len(c.Status) != 1 || !strings.Contains("AMDRT", c.Status):
		return "status", text.Quote(c.Status) + " is not a status (use A, M, D, R or T)"
	case renamed && !isTreePath(c.OldPath):
		return "old_path", "a rename needs the path it came from: " + notTreePath(c.OldPath)
	case renamed && c.OldPath == c.Path:
		return "old_path", "same as path: a rename has two different paths"
	case !renamed && c.OldPath != "":
		return "old_path", "only a rename (status R) has an old path"
	case !isMode(c.OldMode):
		return "old_mode", text.Quote(c.OldMode) + " is not a mode (use six octal digits)"
	case !isMode(c.Mode):
		return "mode", text.Quote(c.Mode) + " is not a mode (use six octal digits)"
	case c.OldBlob != "" && !text.IsObject(c.OldBlob):
		return "old_blob", text.Quote(c.OldBlob) + " is not a full object ID"
	case c.Blob != "" && !text.IsObject(c.Blob):
		return "blob", text.Quote(c.Blob) + " is not a full object ID"
	case len(c.Hunks) > 0 && (c.Binary || c.Status != "M" && !renamed):
		return "hunks", "only a text file that was modified or renamed (status M or R) has hunks"
	}

	for i := range c.Hunks {
		h := &c.Hunks[i]
		if field, message := h.fault(); message != "" {
			return text.Entry("hunks", i) + "." + field, message
		}
		// Between two hunks, git has at least one unchanged line.
		if i > 0 && h.firstGap() <= c.Hunks[i-1].lastGap() {
			return text.Entry("hunks", i) + ".start", "overlaps or touches the previous hunk (list hunks like git diff -U0)"
		}
	}
	return "", ""
}

// isTreePath reports whether p is a valid path of a file in a git tree.
func isTreePath(p string) bool {
	return p != "" && p != "." && len(p) <= maxPathLen && strings.Count(p, "/") < maxSegments && p[0] != '/' &&
		path.Clean(p) == p && p != ".." && !strings.HasPrefix(p, "../") && !strings.ContainsRune(p, 0)
}

func notTreePath(p string) string {
	return text.Quote(p) + " is not a clean path relative to the repo root, of at most 4096 bytes and 256 segments"
}

func isMode(s string) bool {
	return s == "" || len(s) == 6 && strings.Trim(s, "01234567") == ""
}

// fault returns the first invalid member of the hunk and why it is invalid.
func (h *Hunk) fault() (field, message string) {
	const notLine = "out of range (use 0 to 2147483647)"
	const notHash = "use 16 lower-case hex digits"

	switch {
	case h.Start < 0 || h.Start > maxLine:
		return "start", notLine
	case h.Lines < 0 || h.Lines > maxLine:
		return "lines", notLine
	case h.Added < 0 || h.Added > maxLine:
		return "added", notLine
	case h.Lines > 0 && h.Start == 0:
		return "start", "use 1 or more: 0 is only for lines added at the beginning of a file"
	case h.Lines > maxLine-h.Start:
		return "lines", "too large: the last line is above 2147483647"
	case h.Lines == 0 && h.Added == 0:
		return "lines", "lines and added are both 0: the hunk changes nothing"
	case !isLineHash(h.Text):
		return "text", notHash
	case len(h.Function) > maxHeading:
		return "function", "too long: at most 1024 bytes"
	case len(h.Near) == 0 || len(h.Near) > h.gaps():
		return "near", h.notGaps(len(h.Near))
	case len(h.Far) == 0 || len(h.Far) > h.gaps():
		return "far", h.notGaps(len(h.Far))
	case len(h.Far) != len(h.Near):
		return "far", fmt.Sprintf("has %d hashes but near has %d: use the same number", len(h.Far), len(h.Near))
	}

	for i, hash := range h.Near {
		if !isLineHash(hash) {
			return text.Entry("near", i), notHash
		}
	}
	for i, hash := range h.Far {
		if !isLineHash(hash) {
			return text.Entry("far", i), notHash
		}
	}
	return "", ""
}

// gaps returns the maximum number of near or far hashes of the hunk. To limit its size, a
// record may omit the last ones; see file.isTruncated.
func (h *Hunk) gaps() int { return min(h.Lines, maxGaps-1) + 1 }

func (h *Hunk) notGaps(n int) string {
	return fmt.Sprintf("has %d hashes: a hunk of %d lines has 1 to %d, one per gap around its lines (at most %d)",
		n, h.Lines, h.gaps(), maxGaps)
}

// isLineHash reports whether s is a hash or empty, which marks a hash that is not unique.
func isLineHash(s string) bool { return s == "" || len(s) == 16 && text.IsHex(s) }

// firstGap and lastGap return the first and last gap that the hunk covers. Gap g is
// between the old lines g and g+1.
func (h *Hunk) firstGap() int {
	if h.Lines == 0 {
		return h.Start
	}
	return h.Start - 1
}

func (h *Hunk) lastGap() int { return h.firstGap() + h.Lines }
