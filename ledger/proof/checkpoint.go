package proof

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	formats "github.com/transparency-dev/formats/log"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// MaxCheckpoint is the maximum length of a signed checkpoint with its cosignatures, in
// bytes. Post-quantum signatures have nearly 5,000.
const MaxCheckpoint = 1 << 20

// A Checkpoint is the size and the root hash of a log (C2SP tlog-checkpoint). It has no
// extension lines.
type Checkpoint struct {
	Origin string
	Size   int64
	Root   tlog.Hash
}

// Text returns the text that the log signs.
func (c Checkpoint) Text() string {
	return string(formats.Checkpoint{Origin: c.Origin, Size: uint64(c.Size), Hash: c.Root[:]}.Marshal())
}

// ParseCheckpoint parses the text of a checkpoint. It accepts only what Text writes.
func ParseCheckpoint(text string) (Checkpoint, error) {
	var parsed formats.Checkpoint
	if _, err := parsed.Unmarshal([]byte(text)); err != nil {
		return Checkpoint{}, fmt.Errorf("parse checkpoint: %w", err)
	}
	if parsed.Size > math.MaxInt64>>TileHeight || len(parsed.Hash) != tlog.HashSize {
		return Checkpoint{}, errors.New("parse checkpoint: the size or the hash is out of range")
	}
	c := Checkpoint{Origin: parsed.Origin, Size: int64(parsed.Size), Root: tlog.Hash(parsed.Hash)}
	if c.Text() != text {
		return c, errors.New("parse checkpoint: want origin, size and root hash on three lines, and no extensions")
	}
	return c, nil
}

// Sign returns the checkpoint as a note that is signed with the key of the log. The key's
// name must be the origin.
func (c Checkpoint) Sign(key note.Signer) ([]byte, error) {
	if key.Name() != c.Origin {
		return nil, fmt.Errorf("sign checkpoint: the key is of %s, and the log is %s", key.Name(), c.Origin)
	}
	return note.Sign(&note.Note{Text: c.Text()}, key)
}

// OpenCheckpoint verifies the signature of a log in a signed checkpoint, and returns it. A
// key is only good for checkpoints whose origin is its name.
func OpenCheckpoint(signed []byte, keys ...note.Verifier) (Checkpoint, error) {
	if len(signed) > MaxCheckpoint {
		return Checkpoint{}, fmt.Errorf("the checkpoint has more than %d bytes", MaxCheckpoint)
	}
	opened, err := note.Open(signed, note.VerifierList(keys...))
	if err != nil {
		return Checkpoint{}, fmt.Errorf("open checkpoint: %w", err)
	}
	c, err := ParseCheckpoint(opened.Text)
	if err != nil {
		return c, err
	}

	for _, s := range slices.Concat(opened.Sigs, opened.UnverifiedSigs) {
		if _, err := decode(s.Base64); err != nil {
			return c, fmt.Errorf("open checkpoint: a signature of %s: %w", s.Name, err)
		}
	}
	signedByLog := func(s note.Signature) bool { return s.Name == c.Origin }
	if !slices.ContainsFunc(opened.Sigs, signedByLog) {
		return c, fmt.Errorf("open checkpoint: no key of the log %s has signed it", c.Origin)
	}
	return c, nil
}

// ReadCheckpoint returns what a signed checkpoint says without verifying it.
func ReadCheckpoint(signed []byte) (Checkpoint, error) {
	end := bytes.LastIndex(signed, []byte("\n\n"))
	if end < 0 {
		return Checkpoint{}, errors.New("parse checkpoint: it has no signatures")
	}
	return ParseCheckpoint(string(signed[:end+1]))
}

// Cosigned returns a signed checkpoint with more signature lines, such as cosignatures of
// witnesses. Lines that it has already are left out.
func Cosigned(signed []byte, lines string) []byte {
	for line := range strings.Lines(lines) {
		if !bytes.Contains(signed, []byte("\n"+line)) {
			signed = append(slices.Clip(signed), line...)
		}
	}
	return signed
}
