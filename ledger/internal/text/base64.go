package text

import (
	"bytes"
	"encoding/base64"
	"errors"
	"slices"
)

var (
	// Strict, so that no two texts decode to the same bytes.
	rawStd = base64.RawStdEncoding.Strict()
	rawURL = base64.RawURLEncoding.Strict()

	errNotBase64 = errors.New("not valid base64")
)

// TrimBase64 removes the padding from base64 as DSSE allows it: in the standard or the URL alphabet, with or
// without padding. It also returns the encoding of the rest.
func TrimBase64(text []byte) ([]byte, *base64.Encoding, error) {
	trimmed := bytes.TrimRight(text, "=")
	if padding := len(text) - len(trimmed); padding > 2 || padding > 0 && len(text)%4 != 0 {
		return nil, nil, errNotBase64
	}
	if bytes.IndexByte(trimmed, '-') >= 0 || bytes.IndexByte(trimmed, '_') >= 0 {
		return trimmed, rawURL, nil
	}
	return trimmed, rawStd, nil
}

// AppendBase64 decodes text and appends the bytes to dst. The text and the encoding are those
// that TrimBase64 returned.
func AppendBase64(dst, text []byte, encoding *base64.Encoding) ([]byte, error) {
	size := encoding.DecodedLen(len(text))
	dst = slices.Grow(dst, size)
	n, err := encoding.Decode(dst[len(dst):len(dst)+size], text)
	if err != nil || n != size { // n is less if the decoder skipped line breaks
		return nil, errNotBase64
	}
	return dst[:len(dst)+n], nil
}
