package sigstore

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// guard calls a function that parses untrusted input. It returns a panic as an error.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: the Sigstore library failed on it", identity.ErrMalformedBundle)
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
	return text.ClipAt(message, maxMessage)
}
