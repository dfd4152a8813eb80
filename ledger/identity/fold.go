package identity

import (
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Fold returns the text of d by which persons are compared: two DNs that differ
// only in case, in blanks or in how a character is encoded have the same one.
// It is written as String writes it. Unlike d, an attribute may be longer than
// ParseDN accepts, because some characters fold to several.
func (d DN) Fold() string { return d.folded().String() }

func (d DN) folded() DN {
	return DN{CN: foldValue(d.CN), OU: foldValue(d.OU), O: foldValue(d.O)}
}

// foldValue normalizes a value to NFKC, folds its case, and replaces each run of
// blanks by one space, with none at either end. A value of blanks alone becomes
// one space, so that it stays a value.
func foldValue(value string) string {
	if value == "" {
		return ""
	}
	// Folding may undo the normalization and the other way round. Two rounds
	// reach what no further round changes (Unicode, definition D146).
	fold := cases.Fold()
	value = norm.NFKC.String(fold.String(norm.NFD.String(value)))
	value = norm.NFKC.String(fold.String(value))
	if value = strings.Join(strings.Fields(value), " "); value == "" {
		return " "
	}
	return value
}
