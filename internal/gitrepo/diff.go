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

// maxHeading is the ledger's limit for a hunk's heading, in bytes. Git cuts
// headings to less.
const maxHeading = 1024

// A diffReader reads the output of git diff-tree --raw -z, and the patches that -p
// adds. It relies on the order of patches and on line counts. It never parses the
// file names in a patch, because they are ambiguous.
type diffReader struct {
	in      *bufio.Reader
	changes []radar.Change
	text    hash.Hash // of the lines that the current hunk adds
}

func newDiffReader(in io.Reader) *diffReader {
	return &diffReader{in: bufio.NewReaderSize(in, 64<<10), changes: []radar.Change{}, text: sha256.New()}
}

// readRaw reads the raw part: for each change
// ":<old mode> <mode> <old blob> <blob> <status>" NUL path NUL. A rename has the old
// path before the new one. If patches follow, a single NUL ends the raw part.
func (d *diffReader) readRaw() error {
	for {
		meta, err := d.in.ReadString(0)
		if errors.Is(err, io.EOF) && meta == "" || err == nil && meta == "\x00" {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read a change after %q: %w", meta, err)
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
		return "", fmt.Errorf("cannot read a path after %q: %w", path, err)
	}
	return pathText(strings.TrimSuffix(path, "\x00")), nil
}

// pathText returns a path as valid UTF-8. It escapes invalid bytes as git does, so
// that different paths stay different.
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

// unlessZero returns a mode or an object id, or "" if it is all zeros. Git writes
// zeros for a file that does not exist.
func unlessZero(s string) string {
	if strings.Trim(s, "0") == "" {
		return ""
	}
	return s
}

// readPatches reads the patches and adds them to the changes. There is one for each
// change, in the same order. A change of type has two, since git shows it as a
// deletion and an addition. It calls done for each change when its patches are read.
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
				err = fmt.Errorf("got %q where the patch of %q should begin", line, c.Path)
			}
			if err != nil {
				return noEOF(err)
			}
			line, err = d.readPatch(c)
		}
		done(c)
	}

	if err == nil {
		err = fmt.Errorf("unexpected %q after the last patch", line)
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

// checkIndex checks that a patch belongs to the change, by the blobs of its index
// line.
func checkIndex(line string, c *radar.Change) error {
	if c.Status == "T" {
		return nil
	}
	ids, _, _ := strings.Cut(strings.TrimPrefix(line, "index "), " ")
	from, to, _ := strings.Cut(ids, "..")
	if unlessZero(from) != c.OldBlob || unlessZero(to) != c.Blob {
		return fmt.Errorf("patch %q does not belong to %q", line, c.Path)
	}
	return nil
}

// readHunk reads a hunk whose first line is
// "@@ -start,lines +start,lines @@ heading". It adds only hunks of changed text
// files to the change.
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

// isTextChange reports whether a change can have hunks: a regular file was changed or
// renamed. Git also shows links and submodules as text; their hunks are ignored.
func isTextChange(c *radar.Change) bool {
	return (c.Status == "M" || c.Status == "R") && isFileMode(c.OldMode) && isFileMode(c.Mode)
}

func isFileMode(mode string) bool { return strings.HasPrefix(mode, "100") }

// parseRange parses the "start,lines" of one side of a hunk. Git omits a count of
// one.
func parseRange(s, sign string) (start, lines int, err error) {
	from, count, hasCount := strings.Cut(strings.TrimPrefix(s, sign), ",")
	if start, err = strconv.Atoi(from); err != nil || !strings.HasPrefix(s, sign) || start < 0 {
		return 0, 0, fmt.Errorf("invalid line range %q", s)
	}
	if !hasCount {
		return start, 1, nil
	}
	if lines, err = strconv.Atoi(count); err != nil || lines < 0 || start == 0 && lines > 0 {
		return 0, 0, fmt.Errorf("invalid line range %q", s)
	}
	return start, lines, nil
}

// headingText returns a hunk's heading as valid UTF-8. Some versions of git cut
// headings in the middle of a character; the rest of that character is removed, so
// that all versions agree.
func headingText(s string) string {
	s = strings.TrimPrefix(s, " ")
	s = s[:min(len(s), maxHeading/utf8.UTFMax)] // ToValidUTF8 can make it longer
	for range utf8.UTFMax - 1 {
		if r, size := utf8.DecodeLastRuneInString(s); r == utf8.RuneError && size == 1 {
			s = s[:len(s)-1]
		}
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// readBody reads one side of a hunk: lines that begin with sign. It writes them to
// w as they are in the file. The line "\ No newline at end of file" means that the
// last one has no line break.
func (d *diffReader) readBody(lines int, sign byte, w io.Writer) error {
	if lines == 0 {
		return nil
	}
	for i := range lines {
		if b, err := d.in.ReadByte(); err != nil || b != sign {
			return cmp.Or(noEOF(err), fmt.Errorf("hunk is %d lines short", lines-i))
		}
		if i > 0 {
			_, _ = w.Write(newline) // a hash and io.Discard never fail
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

// copyLine copies the rest of the line to w, without its line break.
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

// readLine returns the next line of a patch's header, valid until the next read. A
// line with long names may exceed the buffer.
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

// noEOF turns io.EOF into io.ErrUnexpectedEOF.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
