// Package cursor seals the positions of pages, which are row ids and times: the cursors of lists
// disclose nothing about the rows of others, and nobody can forge or change one.
package cursor

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
)

// KeySize is the size of a key in bytes.
const KeySize = 32

// A Sealer seals positions with AES-256-GCM. The nonce is derived from the list and the position, as
// in RFC 5297, so that a page has the same cursor, and the same ETag, whenever it is read.
type Sealer struct {
	aead     cipher.AEAD
	nonceKey []byte
}

// New returns a Sealer with a random key.
func New(key []byte) (*Sealer, error) {
	if len(key) != KeySize {
		return nil, fmt.Errorf("the key of cursors has %d bytes, not %d", len(key), KeySize)
	}
	sealing, err := hkdf.Expand(sha256.New, key, "ledgerd cursors: encryption", KeySize)
	if err != nil {
		return nil, err
	}
	nonces, err := hkdf.Expand(sha256.New, key, "ledgerd cursors: nonces", KeySize)
	if err != nil {
		return nil, err
	}

	block, err := aes.NewCipher(sealing)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	return &Sealer{aead, nonces}, err
}

// Seal returns the cursor of a position in a list, which a name without NUL identifies. Its length
// follows from the number of values in the position.
func (s *Sealer) Seal(list string, position []int64) string {
	var plain []byte
	for _, value := range position {
		plain = binary.BigEndian.AppendUint64(plain, uint64(value))
	}
	nonce := s.nonce(list, plain)
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nonce, nonce, plain, []byte(list)))
}

// Open returns the n values of the position that a cursor of a list has. It returns false if the
// cursor was not sealed for this list.
func (s *Sealer) Open(list, cursor string, n int) ([]int64, bool) {
	box, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(box) != s.aead.NonceSize()+8*n+s.aead.Overhead() {
		return nil, false
	}
	nonce, sealed := box[:s.aead.NonceSize()], box[s.aead.NonceSize():]
	plain, err := s.aead.Open(nil, nonce, sealed, []byte(list))
	if err != nil {
		return nil, false
	}
	position := make([]int64, n)
	for i := range position {
		position[i] = int64(binary.BigEndian.Uint64(plain[8*i:]))
	}
	return position, true
}

func (s *Sealer) nonce(list string, plain []byte) []byte {
	mac := hmac.New(sha256.New, s.nonceKey)
	mac.Write([]byte(list))
	mac.Write([]byte{0})
	mac.Write(plain)
	return mac.Sum(nil)[:s.aead.NonceSize()]
}
