package identity

import (
	"crypto/x509/pkix"
	"fmt"
	"strings"
	"unicode"
)

// signerDN returns the DN in the subject of a signer's certificate, like subjectDN. It
// also refuses invisible characters.
func signerDN(name pkix.Name) (DN, error) {
	dn, err := subjectDN(name)
	if err != nil {
		return DN{}, err
	}
	if err := dn.CheckVisible(); err != nil {
		return DN{}, fmt.Errorf("subject's %w", err)
	}
	return dn, nil
}

// CheckVisible returns an error if d has a character that cannot be seen, because two
// such DNs may look the same. New identities must not have one.
func (d DN) CheckVisible() error {
	for attr, value := range d.values() {
		if err := CheckVisible(value); err != nil {
			return fmt.Errorf("%s %w", attrNames[attr], err)
		}
	}
	return nil
}

// CheckVisible returns an error if text has a character that cannot be seen, or is blank.
func CheckVisible(text string) error {
	for _, r := range text {
		if isInvisible(r) {
			return fmt.Errorf("contains the invisible or unknown character U+%04X (remove it)", r)
		}
	}
	if text != "" && strings.TrimSpace(text) == "" {
		return fmt.Errorf("%q is blank", text)
	}
	return nil
}

// isInvisible reports whether r may have no visible form: a control or format character,
// another that is ignored by default (UAX #44), a filler, or one that is private or
// unknown to this version of Unicode, which may also fold differently in a later one.
// Spaces are not invisible, although DN.Fold treats all of them alike.
//
// It is stricter than isHidden and, since nothing stored depends on it, may change.
func isInvisible(r rune) bool {
	switch r {
	case '\u2800', '\U00016fe4', '\U0001d159': // Braille blank, Khitan filler, null notehead
		return true
	}
	return !unicode.IsGraphic(r) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
