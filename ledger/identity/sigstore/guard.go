package sigstore

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

var (
	// ErrMalformed is the error of a bundle that cannot be read.
	ErrMalformed = errors.New("the bundle is not valid")
	// ErrExpired is the error of a bundle that was signed while its certificate was not valid.
	ErrExpired = errors.New("the certificate was not valid when it signed")
	// ErrStale is the error of a bundle for whose time the trusted root lacks a key, because it is too
	// old or of another Sigstore instance.
	ErrStale = errors.New("the trusted root is stale, or of another Sigstore instance")
)

// guard calls a function that parses untrusted input. It returns a panic as an error.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: the Sigstore library failed on it", ErrMalformed)
		}
	}()
	return f()
}

// maxMessage limits the text of an error of the library, in bytes.
const maxMessage = 300

// clip returns the text of an error of the library, which may quote its input, for use in a message.
func clip(err error) string {
	message := strings.ToValidUTF8(err.Error(), "?")
	message = strings.Map(func(r rune) rune {
		if r == '\u00a0' || r == '\n' { // protobuf writes no-break spaces so that programs do not compare its errors
			return ' '
		}
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, message)
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + "…"
}
