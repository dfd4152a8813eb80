package identity

import (
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Fold returns a text for comparing signers. It is the same for DNs that differ only in
// case, in white space or in the encoding of a character. It has the form that String
// returns, but an attribute may be longer than ParseDN accepts, because some characters
// fold to several.
func (d DN) Fold() string { return d.folded().String() }

func (d DN) folded() DN {
	return DN{CN: foldValue(d.CN), OU: foldValue(d.OU), O: foldValue(d.O)}
}

// FoldText returns a text for comparing names, as Fold does with the attributes of a DN.
func FoldText(text string) string { return foldValue(text) }

// foldValue normalizes a value to NFKC, folds its case, trims white space and replaces
// each run of white space by one space. A value that is all white space becomes one space,
// so that it is not empty.
func foldValue(value string) string {
	if value == "" {
		return ""
	}
	// Case folding may undo the normalization, and vice versa. The result of two rounds
	// is stable (Unicode, definition D146).
	fold := cases.Fold()
	value = norm.NFKC.String(fold.String(norm.NFD.String(value)))
	value = norm.NFKC.String(fold.String(value))
	if value = strings.Join(strings.Fields(value), " "); value == "" {
		return " "
	}
	return value
}
