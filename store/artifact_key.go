package store

import (
	"encoding/hex"
	"strings"
)

// digestKey returns a digest as stored: its length says which one it is.
func digestKey(digest string) []byte {
	_, digits, _ := strings.Cut(digest, ":")
	key, _ := hex.DecodeString(digits) // it has been parsed
	return key
}
