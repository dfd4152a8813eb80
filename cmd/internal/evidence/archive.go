package evidence

import (
	"archive/tar"
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
)

// An Archive is an export that somebody gave us. Nothing in it is trusted, and nothing is
// extracted. It is safe for concurrent use.
type Archive struct {
	from  io.ReaderAt
	files map[string]entry
	names []string // in order
}

// An entry is a file in the archive.
type entry struct {
	offset, size int64
	sum          [sha256.Size]byte
}

// A counter counts the bytes that are read.
type counter struct {
	io.Reader
	n int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += int64(n)
	return n, err
}

// Read reads the archive in a file of a size in bytes: a tar that has only regular files, whose
// names are those of an export, within its limits.
func Read(from io.ReaderAt, size int64) (*Archive, error) {
	if size > MaxSize {
		return nil, fmt.Errorf("it has more than %d bytes", int64(MaxSize))
	}
	in := &counter{Reader: bufio.NewReaderSize(io.NewSectionReader(from, 0, size), 1<<16)}
	files := tar.NewReader(in)
	a := &Archive{from: from, files: make(map[string]entry)}

	end := int64(0) // of the last file
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, badTar(err)
		}
		if err := a.check(header); err != nil {
			return nil, err
		}

		e := entry{offset: in.n, size: header.Size}
		sum := sha256.New()
		if _, err := io.Copy(sum, files); err != nil {
			return nil, badTar(err)
		}
		copy(e.sum[:], sum.Sum(nil))
		a.files[header.Name] = e
		end = e.offset + (e.size+blockSize-1)/blockSize*blockSize
	}
	if in.n < end+2*blockSize { // a tar ends with two blocks of zeros
		return nil, errTruncated
	}
	if err := onlyZeros(in); err != nil {
		return nil, err
	}
	a.names = slices.Sorted(maps.Keys(a.files))
	return a, nil
}

var errTruncated = errors.New("it is truncated")

func badTar(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errTruncated
	}
	return fmt.Errorf("it is not a tar file, or damaged: %w", err)
}

// check checks the header of the next file. A header in another form than USTAR can hide what it
// says from other programs.
func (a *Archive) check(h *tar.Header) error {
	switch {
	case !isName(h.Name):
		return fmt.Errorf("it has a file with the name %.100q, which no export has", h.Name)
	case h.Typeflag != tar.TypeReg:
		return fmt.Errorf("%s is not a regular file", h.Name)
	case h.Format != tar.FormatUSTAR || len(h.PAXRecords) > 0:
		return fmt.Errorf("%s is in another form of tar than USTAR", h.Name)
	case h.Size > MaxFile:
		return fmt.Errorf("%s has more than %d bytes", h.Name, int64(MaxFile))
	case len(a.files) >= MaxFiles:
		return fmt.Errorf("it has more than %d files", MaxFiles)
	}
	if _, known := a.files[h.Name]; known {
		return fmt.Errorf("it has two files with the name %s", h.Name)
	}
	return nil
}

// onlyZeros checks that nothing follows the end of the archive but padding.
func onlyZeros(in io.Reader) error {
	block := make([]byte, 1<<16)
	for {
		n, err := in.Read(block)
		if len(bytes.Trim(block[:n], "\x00")) > 0 {
			return errors.New("it goes on after the end of the tar")
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Names returns the names of all files, in order. The caller must not change them.
func (a *Archive) Names() []string { return a.names }

// Has reports whether there is a file with the name.
func (a *Archive) Has(name string) bool {
	_, ok := a.files[name]
	return ok
}

// File returns the content of a file.
func (a *Archive) File(name string) ([]byte, error) {
	e, ok := a.files[name]
	if !ok {
		return nil, fmt.Errorf("%s is missing", name)
	}
	content := make([]byte, e.size)
	if _, err := a.from.ReadAt(content, e.offset); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if sha256.Sum256(content) != e.sum {
		return nil, fmt.Errorf("%s has changed while it was read", name)
	}
	return content, nil
}

// JSON decodes a file into v. Unknown members are ignored: a newer version may add some.
func (a *Archive) JSON(name string, v any) error {
	text, err := a.File(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("parse %s: %w", name, err)
	}
	return nil
}

// Manifest returns the manifest. It is an error if the export is in another format.
func (a *Archive) Manifest() (m Manifest, err error) {
	if err := a.JSON(ManifestFile, &m); err != nil {
		return m, err
	}
	if m.Format != Format {
		return m, fmt.Errorf("it has the format %.100q, and this version of ledgerd reads %s", m.Format, Format)
	}
	if len(m.Commits) > MaxCommits {
		return m, fmt.Errorf("%s has more than %d commits", ManifestFile, MaxCommits)
	}
	return m, nil
}

// IsCurrent reports whether this version of ledgerd writes the same page.
func (m Manifest) IsCurrent() bool { return m.Page == pageVersion }

// Commit returns what the export has of a commit. The files can be of anything.
func (a *Archive) Commit(sha string) (c Commit, err error) {
	if err := a.JSON(CommitFile(sha, recordFile), &c.Record); err != nil {
		return c, err
	}
	if err := a.JSON(CommitFile(sha, transitionsFile), &c.Transitions); err != nil {
		return c, err
	}
	for _, id := range a.attestationsOf(sha) {
		var record ledger.AttestationRecord
		if err := a.JSON(AttestationFile(sha, id, recordFile), &record); err != nil {
			return c, err
		}
		if record.ID != id {
			return c, fmt.Errorf("%s is of %q", AttestationFile(sha, id, recordFile), record.ID)
		}
		c.Attestations = append(c.Attestations, record)
	}
	return c, nil
}

// attestationsOf returns the IDs of the attestations of a commit, in order.
func (a *Archive) attestationsOf(sha string) (ids []string) {
	prefix := CommitFile(sha, "attestations/")
	first, _ := slices.BinarySearch(a.names, prefix)
	for _, name := range a.names[first:] {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok {
			break
		}
		id, _, _ := strings.Cut(rest, "/")
		if len(ids) == 0 || ids[len(ids)-1] != id {
			ids = append(ids, id)
		}
	}
	return ids
}

// Envelope returns the envelope of an attestation and, unless it is a commit object, the statement
// that was signed. Both are nil if the envelope is not there.
func (a *Archive) Envelope(sha, id string) (envelope, statement []byte, err error) {
	if name := AttestationFile(sha, id, objectFile); a.Has(name) {
		envelope, err = a.File(name)
		return envelope, nil, err
	}
	name := AttestationFile(sha, id, envelopeFile)
	if !a.Has(name) {
		return nil, nil, nil
	}
	if envelope, err = a.File(name); err != nil {
		return nil, nil, err
	}
	statement, err = a.File(AttestationFile(sha, id, statementFile))
	return envelope, statement, err
}

// Assertion returns the assertion of the passkey that has confirmed an attestation; nil if it is not there.
func (a *Archive) Assertion(sha, id string) ([]byte, error) {
	name := AttestationFile(sha, id, assertionFile)
	if !a.Has(name) {
		return nil, nil
	}
	return a.File(name)
}

// Receipt returns the receipt of a commit; nil if it has no receipt.
func (a *Archive) Receipt(sha string) ([]byte, error) {
	if !a.Has(CommitFile(sha, receiptFile)) {
		return nil, nil
	}
	return a.File(CommitFile(sha, receiptFile))
}

// EnvelopeFile returns the name of the file with an envelope, by which a manifest says that it was
// pruned.
func EnvelopeFile(sha, id string) string { return AttestationFile(sha, id, envelopeFile) }

// Strays returns the names of files that no export of these commits has.
func (a *Archive) Strays(m Manifest) (list []string) {
	known := make(map[string]bool, len(m.Commits))
	for _, sha := range m.Commits {
		known[sha] = true
	}
	for _, name := range a.names {
		parts := strings.Split(name, "/")
		if !slices.ContainsFunc(patterns(), func(pattern string) bool {
			matches, err := path.Match(pattern, name)
			return err == nil && matches
		}) || parts[0] == "commits" && !known[parts[1]] {
			list = append(list, name)
		}
	}
	return list
}

// patterns returns those of all names.
func patterns() []string {
	return []string{
		ManifestFile, SumsFile, PageFile, CheckpointFile, KeyFile, IdentitiesFile, TrustedRootsFile, "policy/v*.json",
		EventFile("*"),
		ProofFile("*"), CommitFile("*", recordFile), CommitFile("*", transitionsFile), CommitFile("*", receiptFile),
		AttestationFile("*", "*", recordFile), AttestationFile("*", "*", envelopeFile),
		AttestationFile("*", "*", objectFile), AttestationFile("*", "*", statementFile),
		AttestationFile("*", "*", assertionFile),
	}
}

// CheckSums returns what is wrong with the files by SumsFile: those that have changed, are
// missing, or are not listed, in order of their names.
func (a *Archive) CheckSums() (wrong []error) {
	text, err := a.File(SumsFile)
	if err != nil {
		return []error{err}
	}
	listed := make(map[string]bool)
	for line := range strings.Lines(string(text)) {
		sum, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok || !isName(name) || len(sum) != hex.EncodedLen(sha256.Size) || listed[name] {
			return append(wrong, fmt.Errorf("%s has a line that is not valid: %.150q", SumsFile, line))
		}
		listed[name] = true

		e, ok := a.files[name]
		switch {
		case !ok:
			wrong = append(wrong, fmt.Errorf("%s is missing", name))
		case hex.EncodeToString(e.sum[:]) != sum:
			wrong = append(wrong, fmt.Errorf("%s has changed: its SHA-256 is not the one in %s", name, SumsFile))
		}
	}
	for _, name := range a.names {
		if !listed[name] && name != SumsFile {
			wrong = append(wrong, fmt.Errorf("%s is not listed in %s", name, SumsFile))
		}
	}
	return wrong
}
