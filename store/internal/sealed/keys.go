// Package sealed encrypts short secrets for storage. It has no SQL, so that its fuzz test is
// compiled without the engine.
package sealed

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
)

// The limits of a file with keys, and the size of a key in bytes.
const (
	maxKeys  = 16
	maxBytes = 64 << 10
	keySize  = 32
)

// Keys encrypt secrets with the first key, and decrypt with all of them. The zero value has no
// keys: it stores secrets in plain text.
type Keys struct{ list []key }

type key struct {
	id   string // the beginning of the SHA-256 of the key, in hexadecimal digits
	line int    // of the file
	aead cipher.AEAD
}

// idSize is the size of the id of a key in bytes. In text it has twice as many digits.
const idSize = 4

// ReadKeys reads a file with 1 to 16 keys, one per line: 32 random bytes in base64. Empty lines
// and those that begin with # are ignored. The file has at most 64 KiB. The errors do not contain
// the content of a line.
func ReadKeys(r io.Reader) (Keys, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		return Keys{}, err
	}
	if len(text) > maxBytes {
		return Keys{}, fmt.Errorf("it has more than %d KiB", maxBytes>>10)
	}
	return parseKeys(text)
}

func parseKeys(text []byte) (k Keys, err error) {
	number := 0
	for line := range bytes.Lines(text) {
		number++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}

		if len(k.list) == maxKeys {
			return Keys{}, fmt.Errorf("line %d: more than %d keys (remove those that are no longer needed)", number, maxKeys)
		}
		added, err := newKey(string(line), number)
		if err != nil {
			return Keys{}, fmt.Errorf("line %d: %w", number, err)
		}
		if same := k.find(added.id); same != nil {
			return Keys{}, fmt.Errorf("line %d: the same key as on line %d (remove one)", number, same.line)
		}
		k.list = append(k.list, added)
	}

	if len(k.list) == 0 {
		return Keys{}, errors.New("it has no key (create one with 'openssl rand -base64 32')")
	}
	return k, nil
}

func newKey(text string, line int) (key, error) {
	secret, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(secret) != keySize {
		return key{}, fmt.Errorf("not a key of %d bytes in base64 (create one with 'openssl rand -base64 %d')", keySize,
			keySize)
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return key{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return key{}, err
	}
	digest := sha256.Sum256(secret)
	return key{hex.EncodeToString(digest[:idSize]), line, aead}, nil
}

// find returns the key with an id, or nil.
func (k Keys) find(id string) *key {
	i := slices.IndexFunc(k.list, func(one key) bool { return one.id == id })
	if i < 0 {
		return nil
	}
	return &k.list[i]
}

// Any reports whether there is a key.
func (k Keys) Any() bool { return len(k.list) > 0 }
