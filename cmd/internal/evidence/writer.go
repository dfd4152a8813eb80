package evidence

import (
	"archive/tar"
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// A writer writes the files of an export, and SumsFile at the end.
type writer struct {
	tar   *tar.Writer
	sums  strings.Builder
	names map[string]bool
	size  int64
}

func newWriter(out io.Writer) *writer {
	return &writer{tar: tar.NewWriter(out), names: make(map[string]bool)}
}

// add adds a file of a time. A file that is there already is left out: what two commits share has
// the same content.
func (w *writer) add(name string, at ledger.Time, content []byte) error {
	if w.names[name] {
		return nil
	}
	sum := sha256.Sum256(content)
	if err := w.write(name, at, content); err != nil {
		return err
	}
	fmt.Fprintf(&w.sums, "%x  %s\n", sum, name)
	return nil
}

// addJSON adds a file with a value as JSON.
func (w *writer) addJSON(name string, at ledger.Time, v any) error {
	text, err := encode(v)
	if err != nil {
		return err
	}
	return w.add(name, at, text)
}

func (w *writer) write(name string, at ledger.Time, content []byte) error {
	w.size += int64(len(content)) + 2*blockSize
	switch {
	case !isName(name):
		return fmt.Errorf("the ledger has an ID that no file can have: %q", name)
	case len(content) > MaxFile:
		return fmt.Errorf("%s has more than %d bytes", name, int64(MaxFile))
	case len(w.names) >= MaxFiles:
		return fmt.Errorf("the export has more than %d files (export fewer commits: use a later --since, or --until)",
			MaxFiles)
	case w.size > MaxSize:
		return fmt.Errorf("the export has more than %d bytes (export fewer commits: use a later --since, or --until)",
			int64(MaxSize))
	}

	w.names[name] = true
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content)),
		ModTime: at.Std().Truncate(time.Second), Format: tar.FormatUSTAR}
	if err := w.tar.WriteHeader(header); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if _, err := w.tar.Write(content); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// blockSize is the size of a header, and what content is padded to, in bytes.
const blockSize = 512

// close ends the export with SumsFile.
func (w *writer) close(at ledger.Time) error {
	if err := w.write(SumsFile, at, []byte(w.sums.String())); err != nil {
		return err
	}
	return w.tar.Close()
}
