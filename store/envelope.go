package store

import (
	"bytes"
	"encoding/base64"
	"slices"
)

// A packedEnvelope is an envelope as the database keeps it: where the body holds
// the payload in base64, as DSSE does, the payload is kept as it is, which takes a
// quarter less room.
type packedEnvelope struct {
	body []byte // without the text of the payload, if that is kept apart
	// payload is the decoded payload, and payloadAt where in body its text
	// stands; both are nil where body is whole.
	payload   any
	payloadAt any
}

// pack packs an envelope that holds a payload. What unpack returns is the body,
// byte for byte: a payload in any other spelling stays in it.
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

// unpack returns the body of an envelope from what the database keeps of it.
func unpack(body, payload []byte, at int) []byte {
	whole := make([]byte, 0, len(body)+base64.StdEncoding.EncodedLen(len(payload)))
	whole = append(whole, body[:at]...)
	whole = base64.StdEncoding.AppendEncode(whole, payload)
	return append(whole, body[at:]...)
}
