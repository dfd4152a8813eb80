// Package envelope packs envelopes for storage. It has no SQL, so that its fuzz test is
// compiled without the engine.
package envelope

import (
	"bytes"
	"database/sql"
	"encoding/base64"
	"slices"
)

// Packed is an envelope as stored in the database. If the body contains
// the payload in base64, as in DSSE, the payload is stored decoded, which takes a
// quarter less space.
type Packed struct {
	Body []byte // without the payload, if that is stored decoded
	// Payload is the decoded payload and PayloadAt the offset of its base64 text in
	// the original body. Both are nil if Body is complete.
	Payload   any
	PayloadAt any
}

// Pack packs an envelope. Unpack restores the body byte for byte: a payload that is
// not in standard base64 stays in the body.
func Pack(body, payload []byte) Packed {
	if len(payload) == 0 {
		return Packed{Body: body}
	}
	text := make([]byte, base64.StdEncoding.EncodedLen(len(payload)))
	base64.StdEncoding.Encode(text, payload)
	at := bytes.Index(body, text)
	if at < 0 || len(text) == len(body) {
		return Packed{Body: body}
	}
	return Packed{slices.Concat(body[:at], body[at+len(text):]), payload, int64(at)}
}

// PrunedAt is the PayloadAt of an envelope that was pruned. Its Body is the SHA-256 of the envelope,
// and it has no Payload.
const PrunedAt = -1

// IsPruned reports whether the PayloadAt of a row is that of an envelope that was pruned.
func IsPruned(at sql.NullInt64) bool { return at.Valid && at.Int64 == PrunedAt }

// Unpack returns the original body of a packed envelope.
func Unpack(body, payload []byte, at int) []byte {
	whole := make([]byte, 0, len(body)+base64.StdEncoding.EncodedLen(len(payload)))
	whole = append(whole, body[:at]...)
	whole = base64.StdEncoding.AppendEncode(whole, payload)
	return append(whole, body[at:]...)
}
