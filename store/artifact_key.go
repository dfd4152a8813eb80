package store

import (
	"encoding/hex"
	"strings"
)

// DigestKey returns a digest as stored: its length says which one it is.
func DigestKey(digest string) []byte {
	_, digits, _ := strings.Cut(digest, ":")
	key, _ := hex.DecodeString(digits) // it has been parsed
	return key
}
