package gitrepo

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ledgerd/ledgerd/ledger/radar"
)

// maxHeading is how much of a hunk's heading the ledger takes. Git itself cuts
// it earlier.
const maxHeading = 1024

// A diffReader reads what git diff-tree --raw -z prints, and with -p the patches
// that follow. It goes by their order and the numbers of lines, never by a
// patch's own names, which can be anything.
type diffReader struct {
	in      *bufio.Reader
	changes []radar.Change
	text    hash.Hash // of the lines that a hunk adds
}

func newDiffReader(in io.Reader) *diffReader {
	return &diffReader{in: bufio.NewReaderSize(in, 64<<10), changes: []radar.Change{}, text: sha256.New()}
}

// readRaw reads the raw part: for each change
// ":<old mode> <mode> <old blob> <blob> <status>" NUL path NUL, and for a rename
// the old path before the new one. A NUL alone ends it where patches follow.
func (d *diffReader) readRaw() error {
	for {
		meta, err := d.in.ReadString(0)
		if errors.Is(err, io.EOF) && meta == "" || err == nil && meta == "\x00" {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the raw part ends at %q: %w", meta, err)
		}
		c, err := d.readChange(meta)
		if err != nil {
			return err
		}
		d.changes = append(d.changes, c)
	}
}

func (d *diffReader) readChange(meta string) (radar.Change, error) {
	fields := strings.Fields(strings.TrimSuffix(strings.TrimPrefix(meta, ":"), "\x00"))
	if len(fields) != 5 {
		return radar.Change{}, fmt.Errorf("%q is not a change in git's raw format", meta)
	}
	c := radar.Change{
		OldMode: unlessZero(fields[0]),
		Mode:    unlessZero(fields[1]),
		OldBlob: unlessZero(fields[2]),
		Blob:    unlessZero(fields[3]),
		Status:  fields[4][:1],
	}
	var err error
	if c.Path, err = d.readPath(); err == nil && c.Status == "R" {
		c.OldPath = c.Path
		c.Path, err = d.readPath()
	}
	return c, err
}

func (d *diffReader) readPath() (string, error) {
	path, err := d.in.ReadString(0)
	if err != nil {
		return "", fmt.Errorf("a change has no path after %q: %w", path, err)
	}
	return pathText(strings.TrimSuffix(path, "\x00")), nil
}

// pathText returns a path in UTF-8: bytes that are not are written as git shows
// them, so that different paths stay different.
func pathText(path string) string {
	if utf8.ValidString(path) {
		return path
	}
	var b strings.Builder
	for path != "" {
		r, size := utf8.DecodeRuneInString(path)
		if r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, `\%03o`, path[0])
		} else {
			b.WriteString(path[:size])
		}
		path = path[size:]
	}
	return b.String()
}

// unlessZero returns a mode or an object id, empty where git writes zeros for
// what is not there.
func unlessZero(s string) string {
	if strings.Trim(s, "0") == "" {
		return ""
	}
	return s
}

// readPatches reads the patches: one for each change, in the same order, and two
// for a change of type, which git shows as a deletion and an addition. Each
// change is shown to done once all that the diff tells of it is read.
func (d *diffReader) readPatches(done func(*radar.Change)) error {
	line, err := d.readLine()
	for i := range d.changes {
		c := &d.changes[i]
		patches := 1
		if c.Status == "T" {
			patches = 2
		}
		for range patches {
			if err == nil && !bytes.HasPrefix(line, []byte("diff --git ")) {
				err = fmt.Errorf("%q begins no patch of %q", line, c.Path)
			}
			if err != nil {
				return noEOF(err)
			}
			line, err = d.readPatch(c)
		}
		done(c)
	}
	if err == nil {
		err = fmt.Errorf("%q follows the last patch", line)
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// readPatch reads one patch of a change and returns the line after it.
func (d *diffReader) readPatch(c *radar.Change) ([]byte, error) {
	for {
		line, err := d.readLine()
		if err != nil {
			return nil, err
		}
		switch {
		case bytes.HasPrefix(line, []byte("diff --git ")):
			return line, nil
		case bytes.HasPrefix(line, []byte("Binary files ")):
			c.Binary = true
		case bytes.HasPrefix(line, []byte("index ")):
			err = checkIndex(string(line), c)
		case bytes.HasPrefix(line, []byte("@@ ")):
			err = d.readHunk(string(line), c)
		}
		if err != nil {
			return nil, noEOF(err)
		}
	}
}

// checkIndex checks that a patch is of the change that it is taken for.
func checkIndex(line string, c *radar.Change) error {
	if c.Status == "T" {
		return nil
	}
	ids, _, _ := strings.Cut(strings.TrimPrefix(line, "index "), " ")
	from, to, _ := strings.Cut(ids, "..")
	if unlessZero(from) != c.OldBlob || unlessZero(to) != c.Blob {
		return fmt.Errorf("%q is not the patch of %q", line, c.Path)
	}
	return nil
}

// readHunk reads a hunk, from its line "@@ -start,lines +start,lines @@ heading"
// on. Only those of changed text files are kept.
func (d *diffReader) readHunk(line string, c *radar.Change) error {
	ranges, heading, _ := strings.Cut(strings.TrimPrefix(line, "@@ "), " @@")
	from, to, _ := strings.Cut(ranges, " ")
	start, lines, err := parseRange(from, "-")
	if err != nil {
		return err
	}
	_, added, err := parseRange(to, "+")
	if err != nil {
		return err
	}
	d.text.Reset()
	if err := d.readBody(lines, '-', io.Discard); err != nil {
		return err
	}
	if err := d.readBody(added, '+', d.text); err != nil {
		return err
	}
	if isTextChange(c) {
		c.Hunks = append(c.Hunks, radar.Hunk{
			Start: start, Lines: lines, Added: added,
			Text: shortHash(d.text.Sum(nil)), Function: headingText(heading),
		})
	}
	return nil
}

// isTextChange reports whether a change is of the sort that has hunks: of a
// file that stays one. Git shows links and submodules as text too.
func isTextChange(c *radar.Change) bool {
	return (c.Status == "M" || c.Status == "R") && isFileMode(c.OldMode) && isFileMode(c.Mode)
}

func isFileMode(mode string) bool { return strings.HasPrefix(mode, "100") }

// parseRange reads one side's "start,lines" of a hunk; one line goes unsaid.
func parseRange(s, sign string) (start, lines int, err error) {
	from, count, found := strings.Cut(strings.TrimPrefix(s, sign), ",")
	if start, err = strconv.Atoi(from); err != nil || !strings.HasPrefix(s, sign) || start < 0 {
		return 0, 0, fmt.Errorf("%q is no range of lines", s)
	}
	if !found {
		return start, 1, nil
	}
	if lines, err = strconv.Atoi(count); err != nil || lines < 0 || start == 0 && lines > 0 {
		return 0, 0, fmt.Errorf("%q is no range of lines", s)
	}
	return start, lines, nil
}

// headingText returns a hunk's heading. Git cuts it after some bytes, which for
// some versions can be amidst a character: no version's part of it stays.
func headingText(s string) string {
	s = strings.TrimPrefix(s, " ")
	s = s[:min(len(s), maxHeading/utf8.UTFMax)] // each byte can become one that is longer
	for range utf8.UTFMax - 1 {
		if r, size := utf8.DecodeLastRuneInString(s); r == utf8.RuneError && size == 1 {
			s = s[:len(s)-1]
		}
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// readBody reads one side of a hunk, lines that begin with sign, and writes them
// to w as they are in the file. A line "\ No newline at end of file" tells that
// the last one has no line break.
func (d *diffReader) readBody(lines int, sign byte, w io.Writer) error {
	if lines == 0 {
		return nil
	}
	for i := range lines {
		if b, err := d.in.ReadByte(); err != nil || b != sign {
			return cmp.Or(noEOF(err), fmt.Errorf("a hunk ends %d lines too early", lines-i))
		}
		if i > 0 {
			_, _ = w.Write(newline) // neither writer fails
		}
		if err := d.copyLine(w); err != nil {
			return err
		}
	}
	if next, _ := d.in.Peek(1); len(next) == 1 && next[0] == '\\' {
		return d.copyLine(io.Discard)
	}
	_, _ = w.Write(newline)
	return nil
}

var newline = []byte("\n")

// copyLine writes the rest of the line, without its line break, to w.
func (d *diffReader) copyLine(w io.Writer) error {
	for {
		part, err := d.in.ReadSlice('\n')
		if err == nil {
			_, _ = w.Write(part[:len(part)-1])
			return nil
		}
		_, _ = w.Write(part)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// readLine returns a line of a patch's head, good until the next read. There is
// no end to how long a name is.
func (d *diffReader) readLine() ([]byte, error) {
	line, err := d.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		line = slices.Clone(line)
		var rest []byte
		rest, err = d.in.ReadBytes('\n')
		line = append(line, rest...)
	}
	if err != nil && len(line) > 0 {
		err = noEOF(err)
	}
	return bytes.TrimSuffix(line, newline), err
}

// noEOF returns the error of an input that ends where it may not.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
