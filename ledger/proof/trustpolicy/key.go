package trustpolicy

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	formats "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerd/ledgerd/ledger/internal/publickey"
)

// The types of keys (C2SP signed-note).
const (
	Ed25519     = 0x01 // signatures of notes
	CosignedV1  = 0x04 // timestamped Ed25519 cosignatures
	CosignedMLD = 0x06 // timestamped ML-DSA-44 cosignatures
)

const (
	sizeMLDSA    = 1312 // of a public key in bytes
	maxNameMLDSA = 255  // bytes of names in a message that is signed with ML-DSA
	timeSize     = 8
)

// A Key is a verifier key (vkey) of a signed note.
type Key struct {
	Name   string
	ID     uint32
	Type   byte
	Public string // bytes of the public key
}

// NewKey returns the key with the ID that follows from name, type and public key.
func NewKey(name string, kind byte, public []byte) Key {
	sum := sha256.Sum256(append(append([]byte(name+"\n"), kind), public...))
	return Key{Name: name, ID: binary.BigEndian.Uint32(sum[:]), Type: kind, Public: string(public)}
}

// ParseKey parses a vkey of one of the types. It accepts only the form that String writes.
func ParseKey(vkey string, types ...byte) (Key, error) {
	name, rest, _ := strings.Cut(vkey, "+")
	id, encoded, ok := strings.Cut(rest, "+")
	if !ok {
		return Key{}, fmt.Errorf("invalid key %.100q: want name+ID+base64", vkey)
	}
	if !validName(name) {
		return Key{}, fmt.Errorf("invalid key %.100q: the name is empty, or has spaces or invalid UTF-8", vkey)
	}
	material, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || len(material) == 0 {
		return Key{}, fmt.Errorf("invalid key %.100q: the part after the second + is not base64", vkey)
	}

	key := NewKey(name, material[0], material[1:])
	if err := key.check(types); err != nil {
		return Key{}, fmt.Errorf("invalid key %.100q: %w", vkey, err)
	}
	if want := fmt.Sprintf("%08x", key.ID); id != want {
		return Key{}, fmt.Errorf("invalid key %.100q: the ID is %.20s, but that of this name and key is %s", vkey, id, want)
	}
	if key.String() != vkey { // such as a newline in base64, which the decoder ignores
		return Key{}, fmt.Errorf("invalid key %.100q: the base64 is not canonical", vkey)
	}
	return key, nil
}

// check checks type and size.
func (k Key) check(types []byte) error {
	if !slices.Contains(types, k.Type) {
		return fmt.Errorf("type 0x%02x is not one of %# x", k.Type, types)
	}
	want := ed25519.PublicKeySize
	if k.Type == CosignedMLD {
		want = sizeMLDSA
	}
	if len(k.Public) != want {
		return fmt.Errorf("the public key has %d bytes, want %d", len(k.Public), want)
	}
	if k.Type == CosignedMLD && len(k.Name) > maxNameMLDSA {
		return fmt.Errorf("the name of an ML-DSA key has more than %d bytes", maxNameMLDSA)
	}
	if _, err := k.Verifier(); err != nil {
		return fmt.Errorf("the public key is not valid: %w", err)
	}
	if k.Type != CosignedMLD {
		return publickey.Check(ed25519.PublicKey(k.Public))
	}
	return nil
}

// String returns the key as a vkey.
func (k Key) String() string {
	material := append([]byte{k.Type}, k.Public...)
	return fmt.Sprintf("%s+%08x+%s", k.Name, k.ID, base64.StdEncoding.EncodeToString(material))
}

// Verifier returns what verifies signatures by the key.
func (k Key) Verifier() (note.Verifier, error) {
	switch k.Type {
	case Ed25519:
		return note.NewVerifier(k.String())
	case CosignedV1, CosignedMLD:
		v, err := formats.NewVerifierForCosignatureV1(k.String())
		if err != nil {
			return nil, err
		}
		return cosignatures{v, k.Type}, nil
	}
	return nil, errors.New("unknown type of key")
}

// cosignatures verifies cosignatures strictly: an ML-DSA message has names of at most 255
// bytes, and no timestamp exceeds 63 bits.
type cosignatures struct {
	note.Verifier
	kind byte
}

func (c cosignatures) Verify(text, signature []byte) bool {
	origin, _, _ := strings.Cut(string(text), "\n")
	if c.kind == CosignedMLD && len(origin) > maxNameMLDSA {
		return false
	}
	if len(signature) < timeSize || binary.BigEndian.Uint64(signature) > math.MaxInt64 {
		return false
	}
	return c.Verifier.Verify(text, signature)
}

// timeOf returns the time of a cosignature, or the zero time if it has none.
func timeOf(s note.Signature) time.Time {
	at, err := formats.CoSigV1Timestamp(s)
	if err != nil || at.Unix() <= 0 {
		return time.Time{}
	}
	return at
}

// validName reports whether a note can have a signature by this name.
func validName(name string) bool {
	bad := func(r rune) bool { return unicode.IsSpace(r) || r < ' ' }
	return name != "" && utf8.ValidString(name) && !strings.Contains(name, "+") && strings.IndexFunc(name, bad) < 0
}
