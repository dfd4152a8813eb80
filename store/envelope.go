package store

import (
	"bytes"
	"encoding/base64"
	"slices"
)

// A packedEnvelope is an envelope as stored in the database. If the body contains
// the payload in base64, as in DSSE, the payload is stored decoded, which takes a
// quarter less space.
type packedEnvelope struct {
	body []byte // without the payload, if that is stored decoded
	// payload is the decoded payload and payloadAt the offset of its base64 text in
	// the original body. Both are nil if body is complete.
	payload   any
	payloadAt any
}

// pack packs an envelope. unpack restores the body byte for byte: a payload that is
// not in standard base64 stays in the body.
func pack(body, payload []byte) packedEnvelope {
	if len(payload) == 0 {
		return packedEnvelope{body: body}
	}
	text := make([]byte, base64.StdEncoding.EncodedLen(len(payload)))
	base64.StdEncoding.Encode(text, payload)
	at := bytes.Index(body, text)
	if at < 0 || len(text) == len(body) {
		return packedEnvelope{body: body}
	}
	return packedEnvelope{slices.Concat(body[:at], body[at+len(text):]), payload, int64(at)}
}

// unpack returns the original body of a packed envelope.
func unpack(body, payload []byte, at int) []byte {
	whole := make([]byte, 0, len(body)+base64.StdEncoding.EncodedLen(len(payload)))
	whole = append(whole, body[:at]...)
	whole = base64.StdEncoding.AppendEncode(whole, payload)
	return append(whole, body[at:]...)
}
