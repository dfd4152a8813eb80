package where

import (
	"strings"
	"unicode"

	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// The limits of an expression.
const (
	MaxSize  = 2048    // bytes
	maxNodes = 5000    // operations, after the expansion of macros such as exists
	maxDepth = 100     // of nested operations
	maxCost  = 100_000 // of one evaluation, in CEL's units
)

// errTooDear says that an evaluation exceeds maxCost.
const errTooDear = "the evaluation costs more than 100000, the limit"

// clean returns a message of CEL as one short line. It may have text of the statement in
// it.
func clean(message string) string {
	message = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, message)
	return text.Clip(strings.Join(strings.Fields(message), " "))
}
