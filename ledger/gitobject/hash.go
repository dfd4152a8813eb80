package gitobject

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/pjbgf/sha1cd"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// header returns what git hashes before the content of an object.
func header(kind string, object []byte) []byte {
	return []byte(kind + " " + strconv.Itoa(len(object)) + "\x00")
}

// checkID returns an error unless an id is the hash of an object with its header. It also
// refuses an object that was made for a collision attack on SHA-1, as git does.
func checkID(id string, header, object []byte) error {
	if !text.IsObject(id) {
		return faultf("%s is not a commit ID (use 40 or 64 lower-case hex digits)", text.Quote(id))
	}
	sum, isAttack := sum(id, header, object)
	switch {
	case isAttack:
		return faultf("was made for a collision attack on SHA-1: another object can have the same hash")
	case sum != id:
		return faultf("is not the object of commit %s: its hash is %s (send exactly what git cat-file commit prints)",
			id, sum)
	}
	return nil
}

// sum returns the hash in hex, by the function that the length of an id stands for. It
// reports whether the object shows a collision attack.
func sum(id string, header, object []byte) (digest string, isAttack bool) {
	if len(id) == hex.EncodedLen(sha256.Size) {
		h := sha256.New()
		h.Write(header)
		h.Write(object)
		return hex.EncodeToString(h.Sum(nil)), false
	}

	h := sha1cd.New().(sha1cd.CollisionResistantHash) //nolint:forcetypeassert // this is its purpose
	h.Write(header)
	h.Write(object)
	bytes, isAttack := h.CollisionResistantSum(nil)
	return hex.EncodeToString(bytes), isAttack
}

// faultf returns an error about the field object.
func faultf(format string, args ...any) *ledger.Error {
	return ledger.FieldErrorf(ledger.CodeInvalidField, "object", format, args...)
}
