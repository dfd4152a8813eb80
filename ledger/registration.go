package ledger

import (
	"cmp"
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode"
)

// What a registration may hold at most.
const (
	maxParents   = 64
	maxAncestors = 500
	maxContained = 10_000
	maxChanges   = 10_000
	maxGaps      = 512 // near and far entries of a hunk
	maxRefLen    = 255
	maxAuthorLen = 320
	maxMessage   = 64 << 10
	maxPathLen   = 4096
	maxSegments  = 256    // of a path
	maxDirs      = 50_000 // distinct ones above the paths of a change record
	maxHeading   = 1024
	maxLine      = 1<<31 - 1
)

// Check reports the first field that cannot be, by its path.
func (r Registration) Check() error {
	return cmp.Or(
		checkRef("branch", r.Branch),
		checkRef("target", r.Target),
		checkObject("base", r.Base),
		checkObjects("parents", r.Parents, maxParents),
		checkObjects("ancestors", r.Ancestors, maxAncestors),
		checkObjects("contained", r.Contained, maxContained),
		checkAuthor("author.name", r.Author.Name),
		checkAuthor("author.email", r.Author.Email),
		checkMessage(r.Message),
		checkChanges(r.Changes),
	)
}

// Check reports what cannot be about a repo that is asked for.
func (n NewRepo) Check() error {
	if err := CheckRepo(n.Name); err != nil {
		return err
	}
	return checkRef("default_branch", n.DefaultBranch)
}

// checkRef accepts what git check-ref-format --branch does, and no name at all.
func checkRef(field, name string) error {
	if name == "" || isRef(name) {
		return nil
	}
	return FieldErrorf(CodeInvalidField, field, "%q cannot name a branch (see git check-ref-format), or is over %d bytes", clip(name), maxRefLen)
}

func isRef(name string) bool {
	if len(name) > maxRefLen || name == "@" || name == "HEAD" || name[0] == '-' || strings.HasSuffix(name, ".") {
		return false
	}
	if strings.Contains(name, "..") || strings.Contains(name, "@{") || strings.ContainsFunc(name, notInRef) {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return true
}

func notInRef(r rune) bool { return unicode.IsControl(r) || strings.ContainsRune(" ~^:?*[\\", r) }

func checkObject(field, id string) error {
	if id == "" || IsCommit(id) {
		return nil
	}
	return FieldErrorf(CodeInvalidField, field, notObject, clip(id))
}

const notObject = "%q is not a whole object id: 40 or 64 lower-case hex digits"

func checkObjects(field string, ids []string, limit int) error {
	if len(ids) > limit {
		return FieldErrorf(CodeInvalidField, field, "%d entries are more than the %d allowed", len(ids), limit)
	}
	for i, id := range ids {
		if !IsCommit(id) {
			return FieldErrorf(CodeInvalidField, entry(field, i), notObject, clip(id))
		}
	}
	return nil
}

func checkAuthor(field, s string) error {
	if len(s) > maxAuthorLen {
		return FieldErrorf(CodeInvalidField, field, "%d bytes are more than the %d allowed", len(s), maxAuthorLen)
	}
	if strings.ContainsFunc(s, unicode.IsControl) {
		return FieldErrorf(CodeInvalidField, field, "it holds a control character")
	}
	return nil
}

func checkMessage(s string) error {
	if len(s) > maxMessage {
		return FieldErrorf(CodeInvalidField, "message", "%d bytes are more than the %d allowed", len(s), maxMessage)
	}
	if strings.ContainsRune(s, 0) {
		return FieldErrorf(CodeInvalidField, "message", "it holds a NUL character")
	}
	return nil
}

func checkChanges(changes []Change) error {
	if len(changes) > maxChanges {
		return FieldErrorf(CodeInvalidField, "changes", "%d entries are more than the %d allowed", len(changes), maxChanges)
	}
	named := recordNames{paths: make(map[string]bool, len(changes)), dirs: make(map[string]bool)}
	for i, c := range changes {
		field, fault := c.fault()
		if fault == "" {
			field, fault = named.add(c)
		}
		if fault != "" {
			return FieldErrorf(CodeInvalidField, entry("changes", i)+"."+field, "%s", fault)
		}
		if len(named.dirs) > maxDirs {
			return FieldErrorf(CodeInvalidField, "changes", "its paths have more than %d directories above them", maxDirs)
		}
	}
	return nil
}

// recordNames are the paths that the changes of a record name, old ones too,
// and the directories above them.
type recordNames struct{ paths, dirs map[string]bool }

// add adds what a change names. A path that is named already is a fault: what
// becomes of it would depend on the order of the changes. git diff-tree names
// each path once, for without -B it pairs only what is gone with what is new:
// two files that were swapped are modified both.
func (n recordNames) add(c Change) (field, fault string) {
	for _, name := range [...]struct{ field, path string }{{"old_path", c.OldPath}, {"path", c.Path}} {
		if name.path == "" {
			continue
		}
		if n.paths[name.path] {
			return name.field, quoted(name.path) + " is named by a change before it: give each path once, as git diff-tree does without -B"
		}
		n.paths[name.path] = true
		n.addAbove(name.path)
	}
	return "", ""
}

func (n recordNames) addAbove(name string) {
	for i := strings.LastIndexByte(name, '/'); i >= 0 && len(n.dirs) <= maxDirs; i = strings.LastIndexByte(name[:i], '/') {
		if n.dirs[name[:i]] {
			return // and all above it
		}
		n.dirs[name[:i]] = true
	}
}

// fault returns the first member of the change that cannot be, and why.
func (c Change) fault() (field, message string) {
	renamed := c.Status == "R"
	switch {
	case !isTreePath(c.Path):
		return "path", notTreePath(c.Path)
	case len(c.Status) != 1 || !strings.Contains("AMDRT", c.Status):
		return "status", quoted(c.Status) + " is none of A, M, D, R and T"
	case renamed && !isTreePath(c.OldPath):
		return "old_path", "a rename names the path it came from; " + notTreePath(c.OldPath)
	case renamed && c.OldPath == c.Path:
		return "old_path", "a rename gives a file another path; " + quoted(c.Path) + " is the one that it came from"
	case !renamed && c.OldPath != "":
		return "old_path", "only a rename (status R) has one"
	case !isMode(c.OldMode):
		return "old_mode", quoted(c.OldMode) + " is not a mode of six octal digits"
	case !isMode(c.Mode):
		return "mode", quoted(c.Mode) + " is not a mode of six octal digits"
	case c.OldBlob != "" && !IsCommit(c.OldBlob):
		return "old_blob", quoted(c.OldBlob) + " is not a whole object id"
	case c.Blob != "" && !IsCommit(c.Blob):
		return "blob", quoted(c.Blob) + " is not a whole object id"
	case len(c.Hunks) > 0 && (c.Binary || c.Status != "M" && !renamed):
		return "hunks", "only a text file that was modified or renamed (status M or R) has hunks"
	}
	for i := range c.Hunks {
		h := &c.Hunks[i]
		if field, message := h.fault(); message != "" {
			return entry("hunks", i) + "." + field, message
		}
		// Between two of git's hunks there is at least one line that both keep.
		if i > 0 && h.firstGap() <= c.Hunks[i-1].lastGap() {
			return entry("hunks", i) + ".start", "it does not lie behind the hunk before it, with a line between the two: give hunks as git diff -U0 does"
		}
	}
	return "", ""
}

// isTreePath reports whether p can be the path of a file in a git tree.
func isTreePath(p string) bool {
	return p != "" && p != "." && len(p) <= maxPathLen && strings.Count(p, "/") < maxSegments && p[0] != '/' &&
		path.Clean(p) == p && p != ".." && !strings.HasPrefix(p, "../") && !strings.ContainsRune(p, 0)
}

func notTreePath(p string) string {
	return quoted(p) + " is not a clean path inside the repo, of at most 4096 bytes and 256 segments"
}

func isMode(s string) bool {
	return s == "" || len(s) == 6 && strings.Trim(s, "01234567") == ""
}

// fault returns the first member of the hunk that cannot be, and why.
func (h *Hunk) fault() (field, message string) {
	const notLine = "it is not a number from 0 to 2147483647"
	const notHash = "a hash has 16 lower-case hex digits"
	switch {
	case h.Start < 0 || h.Start > maxLine:
		return "start", notLine
	case h.Lines < 0 || h.Lines > maxLine:
		return "lines", notLine
	case h.Added < 0 || h.Added > maxLine:
		return "added", notLine
	case h.Lines > 0 && h.Start == 0:
		return "start", "lines are counted from 1; 0 is for lines added at the beginning"
	case h.Lines > maxLine-h.Start:
		return "lines", "the last line is past 2147483647"
	case h.Lines == 0 && h.Added == 0:
		return "lines", "a hunk without lines on either side changes nothing"
	case !isLineHash(h.Text):
		return "text", notHash
	case len(h.Function) > maxHeading:
		return "function", "it is over 1024 bytes"
	case len(h.Near) == 0 || len(h.Near) > h.gaps():
		return "near", h.notGaps(len(h.Near))
	case len(h.Far) == 0 || len(h.Far) > h.gaps():
		return "far", h.notGaps(len(h.Far))
	case len(h.Far) != len(h.Near):
		return "far", fmt.Sprintf("%d hashes do not go with the %d of near", len(h.Far), len(h.Near))
	}
	for i, hash := range h.Near {
		if !isLineHash(hash) {
			return entry("near", i), notHash
		}
	}
	for i, hash := range h.Far {
		if !isLineHash(hash) {
			return entry("far", i), notHash
		}
	}
	return "", ""
}

// gaps returns how many near and far hashes the hunk may have. A record that
// would be too large leaves out the last ones; the radar sees that it does.
func (h *Hunk) gaps() int { return min(h.Lines, maxGaps-1) + 1 }

func (h *Hunk) notGaps(n int) string {
	return fmt.Sprintf("%d hashes are given, but a hunk of %d lines has 1 to %d: for each gap before, between and behind them one, at most %d", n, h.Lines, h.gaps(), maxGaps)
}

// isLineHash accepts the empty text too: it marks a hash that is not unique.
func isLineHash(s string) bool { return s == "" || len(s) == 16 && isHex(s) }

// entry names the i-th entry of a list the way errors name fields.
func entry(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }

func quoted(s string) string { return strconv.Quote(clip(s)) }
