package trustpolicy

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
)

// A Verification is a checkpoint that a policy accepts.
type Verification struct {
	Text     string // of the checkpoint, for proof.ParseCheckpoint
	Log      Key    // that has signed it
	Cosigned []Cosignature
}

// A Cosignature is the valid cosignature of a witness.
type Cosignature struct {
	Witness string // its name in the policy
	Time    time.Time
	Line    string // of the note, with its newline
}

// Verify verifies a signed checkpoint: the signature of one of the policy's logs, or of
// logs that the caller knows, whose name is the origin, and a quorum of cosignatures. The
// text of the checkpoint is not parsed.
func (p *Policy) Verify(signed []byte, logs ...Key) (Verification, error) {
	for _, l := range p.Logs {
		logs = append(logs, l.Key)
	}
	opened, err := Open(signed, append(logs[:len(logs):len(logs)], p.witnessKeys()...)...)
	if err != nil {
		return Verification{}, fmt.Errorf("verify checkpoint: %w", err)
	}

	v := Verification{Text: opened.Text}
	origin, _, _ := strings.Cut(v.Text, "\n")
	for _, key := range logs {
		if key.Name == origin && signedBy(opened, key) != nil {
			v.Log = key
		}
	}
	if v.Log == (Key{}) {
		return v, fmt.Errorf("verify checkpoint: no trusted key of the log %.200q has signed it", origin)
	}
	v.Cosigned = p.cosigned(opened)

	cosigned := make(map[string]bool, len(v.Cosigned))
	for _, c := range v.Cosigned {
		cosigned[c.Witness] = true
	}
	if !p.Satisfied(func(witness string) bool { return cosigned[witness] }) {
		return v, fmt.Errorf("verify checkpoint: %d of %d witnesses have cosigned it, which is not the quorum %s",
			len(cosigned), len(p.Witnesses), p.describe())
	}
	return v, nil
}

// Cosignatures returns the valid cosignatures by witnesses of the policy in a note, in the
// order of the policy. It does not check who else has signed.
func (p *Policy) Cosignatures(signed []byte) ([]Cosignature, error) {
	opened, err := Open(signed, p.witnessKeys()...)
	if _, none := errors.AsType[*note.UnverifiedNoteError](err); none {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return p.cosigned(opened), nil
}

func (p *Policy) witnessKeys() []Key {
	keys := make([]Key, len(p.Witnesses))
	for i, w := range p.Witnesses {
		keys[i] = w.Key
	}
	return keys
}

// cosigned returns the cosignatures in a note. One without a time says nothing about the
// largest size that the witness has seen, so it does not count.
func (p *Policy) cosigned(opened *note.Note) (found []Cosignature) {
	for _, w := range p.Witnesses {
		if s := signedBy(opened, w.Key); s != nil && !timeOf(*s).IsZero() {
			found = append(found, Cosignature{w.Name, timeOf(*s), LineOf(*s)})
		}
	}
	return found
}

// signedBy returns the signature by a key, or nil.
func signedBy(opened *note.Note, key Key) *note.Signature {
	for i, s := range opened.Sigs {
		if s.Name == key.Name && s.Hash == key.ID {
			return &opened.Sigs[i]
		}
	}
	return nil
}

// LineOf returns the line of a signature in a note.
func LineOf(s note.Signature) string { return linePrefix + s.Name + " " + s.Base64 + "\n" }

const linePrefix = "— "

// Open verifies the signatures by keys in a note. Signatures by others are ignored, but if
// a single line names one of the keys and is not a valid signature by it, the whole note
// is refused with a *note.InvalidSignatureError.
func Open(signed []byte, keys ...Key) (*note.Note, error) {
	verifiers := make([]note.Verifier, 0, len(keys))
	known := make(map[lineKey]note.Verifier, len(keys))
	for _, key := range keys {
		v, err := key.Verifier()
		if err != nil {
			return nil, err
		}
		if by := (lineKey{key.Name, key.ID}); known[by] == nil {
			known[by], verifiers = v, append(verifiers, v)
		}
	}
	opened, err := note.Open(signed, note.VerifierList(verifiers...))
	if err != nil {
		return nil, err
	}
	return opened, checkRepeated(signed[len(opened.Text)+1:], opened.Text, known)
}

// A lineKey names the key of a signature line.
type lineKey struct {
	name string
	id   uint32
}

// checkRepeated verifies the signature lines that note.Open skips, because it has seen a
// valid one by the same key.
func checkRepeated(lines []byte, text string, known map[lineKey]note.Verifier) error {
	seen := make(map[lineKey]bool, len(known))
	for line := range strings.Lines(string(lines)) {
		name, encoded, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(line, linePrefix), "\n"), " ")
		signature, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(signature) < 4 {
			continue // note.Open has refused it
		}
		by := lineKey{name, binary.BigEndian.Uint32(signature)}
		if v := known[by]; v != nil && seen[by] && !v.Verify([]byte(text), signature[4:]) {
			return &note.InvalidSignatureError{Name: by.name, Hash: by.id}
		}
		seen[by] = true
	}
	return nil
}
