package proof

import (
	"encoding/base64"
	"errors"
)

// decode decodes base64 (RFC 4648, section 4), and accepts only its canonical form.
func decode(s string) ([]byte, error) {
	b, err := base64.StdEncoding.Strict().DecodeString(s)
	if err == nil && base64.StdEncoding.EncodeToString(b) != s { // the decoder skips line breaks
		err = errors.New("line breaks are not allowed")
	}
	return b, err
}
