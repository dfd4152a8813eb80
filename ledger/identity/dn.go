package identity

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// A DN is the distinguished name of a signer: who signed, in which unit of
// which organization. CN is never empty in a DN that ParseDN or subjectDN returned.
type DN struct{ CN, OU, O string }

// maxAttribute bounds one attribute of a DN or of a pattern, in bytes.
const maxAttribute = 256

// The attributes of a DN, in the order in which they are written.
const (
	attrCN = iota
	attrOU
	attrO
	attrCount
)

var attrNames = [attrCount]string{"cn", "ou", "o"}

// ParseDN reads a DN as RFC 4514 writes it, such as cn=ci,ou=build,o=acme.
// The attributes may come in any order and spaces may surround them, but each
// may come only once, cn must be there, and no others may.
func ParseDN(s string) (DN, error) {
	var values [attrCount]string
	err := parseAttributes(s, func(attr int, value []piece) error {
		text, err := literal(value)
		values[attr] = text
		return err
	})
	if err != nil {
		return DN{}, err
	}
	if values[attrCN] == "" {
		return DN{}, fmt.Errorf("%q has no cn", text.Clip(s))
	}
	return dnOf(values), nil
}

// String writes d with its attributes in the order cn, ou, o, leaving out
// empty ones. Equal DNs have equal texts, and ParseDN reads them back.
func (d DN) String() string {
	b := make([]byte, 0, len(d.CN)+len(d.OU)+len(d.O)+len("cn=,ou=,o="))
	for attr, value := range d.values() {
		if value == "" {
			continue
		}
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = append(append(b, attrNames[attr]...), '=')
		b = appendPart(b, value, true, true)
	}
	return string(b)
}

// subjectDN returns the DN in a certificate's subject. It refuses a subject that
// has no CN, or more than one value of an attribute that a DN has, because it
// would be unclear who is meant. Other attributes, such as the country, are
// not part of a DN.
func subjectDN(name pkix.Name) (DN, error) {
	values, err := nameValues(name)
	if err != nil {
		return DN{}, err
	}
	if values[attrCN] == "" {
		return DN{}, errors.New("subject has no CN")
	}
	return dnOf(values), nil
}

func dnOf(values [attrCount]string) DN {
	return DN{CN: values[attrCN], OU: values[attrOU], O: values[attrO]}
}

func (d DN) values() [attrCount]string { return [attrCount]string{d.CN, d.OU, d.O} }

// nameValues returns the attributes of a DN that a certificate's name has.
func nameValues(name pkix.Name) (values [attrCount]string, err error) {
	names := name.Names
	if names == nil { // not parsed, but made by hand
		for _, set := range name.ToRDNSequence() {
			names = append(names, set...)
		}
	}
	var seen [attrCount]bool
	for _, n := range names {
		attr := attributeOf(n.Type)
		if attr < 0 {
			continue
		}
		upper := strings.ToUpper(attrNames[attr])
		value, ok := n.Value.(string)
		if !ok {
			return values, fmt.Errorf("subject's %s is not a string", upper)
		}
		if seen[attr] {
			return values, fmt.Errorf("subject has more than one %s", upper)
		}
		if err := checkValue(value); err != nil {
			return values, fmt.Errorf("subject's %s %w", upper, err)
		}
		seen[attr], values[attr] = true, value
	}
	return values, nil
}

// attributeOf returns the attribute that an X.520 object identifier (2.5.4.x)
// names, or -1.
func attributeOf(oid asn1.ObjectIdentifier) int {
	if len(oid) != 4 || oid[0] != 2 || oid[1] != 5 || oid[2] != 4 {
		return -1
	}
	switch oid[3] {
	case 3:
		return attrCN
	case 10:
		return attrO
	case 11:
		return attrOU
	}
	return -1
}

func checkValue(value string) error {
	if len(value) > maxAttribute {
		return fmt.Errorf("is longer than %d bytes", maxAttribute)
	}
	if !utf8.ValidString(value) {
		return errors.New("is not valid UTF-8")
	}
	return nil
}

// specials are the characters that a value holds only behind a backslash.
const specials = `,+"\<>;=`

// appendPart appends a value, or a part of one, as RFC 4514 writes it: first
// and last tell whether part begins and ends the value, where a space must be
// escaped. What a terminal would act upon or show in another order is written
// in hex.
func appendPart(b []byte, part string, first, last bool) []byte {
	for i, r := range part {
		switch {
		case strings.ContainsRune(specials, r),
			r == '#' && first && i == 0,
			r == ' ' && (first && i == 0 || last && i == len(part)-1):
			b = append(b, '\\', byte(r))
		case isHidden(r):
			for _, c := range []byte(string(r)) {
				b = appendHex(b, c)
			}
		case r == utf8.RuneError && !strings.HasPrefix(part[i:], string(utf8.RuneError)):
			b = appendHex(b, part[i])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return b
}

func appendHex(b []byte, c byte) []byte { return fmt.Appendf(b, `\%02x`, c) }

// isHidden reports whether r is a control, separates lines, or turns the
// direction of the text that follows. The set must never change: the texts of
// DNs are stored.
func isHidden(r rune) bool {
	return unicode.IsControl(r) || r == 0x061c || r == 0x200e || r == 0x200f ||
		r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// A piece is one byte of a value, or a wildcard.
type piece struct {
	c    byte
	wild bool
}

// literal returns the text of a value without wildcards: a star in a DN is a
// star.
func literal(value []piece) (string, error) {
	text := make([]byte, len(value))
	for i, p := range value {
		text[i] = p.c
	}
	return string(text), checkValue(string(text))
}

// parseAttributes splits s into attributes, and calls set with each one's
// value, whose unescaped stars are wild.
func parseAttributes(s string, set func(attr int, value []piece) error) error {
	if len(s) > attrCount*(3*maxAttribute+8) {
		return errors.New("too long")
	}
	var seen [attrCount]bool
	for rest, more := s, true; more; {
		name, after, ok := strings.Cut(rest, "=")
		if !ok {
			return fmt.Errorf("%q has no = after the attribute name", text.Clip(rest))
		}
		attr, err := parseAttributeName(name)
		if err != nil {
			return err
		}
		if seen[attr] {
			return fmt.Errorf("%s occurs twice", attrNames[attr])
		}
		seen[attr] = true
		var value []piece
		if value, rest, more, err = parseValue(after); err == nil {
			err = set(attr, value)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", attrNames[attr], err)
		}
	}
	return nil
}

func parseAttributeName(name string) (int, error) {
	name = strings.Trim(name, " ")
	for attr, known := range attrNames {
		if strings.EqualFold(name, known) {
			return attr, nil
		}
	}
	return 0, fmt.Errorf("unknown attribute %q (use cn, ou and o)", text.Clip(name))
}

// parseValue reads a value up to the next comma, or to the end of s.
func parseValue(s string) (value []piece, rest string, more bool, err error) {
	s = strings.TrimLeft(s, " ")
	if strings.HasPrefix(s, "#") {
		return nil, "", false, errors.New(`BER values are not supported (escape a leading # as \#)`)
	}
	end := 0 // of the value, before spaces that only surround it
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == ',':
			rest, more = s[i+1:], true
			s = s[:i]
		case c == '\\':
			n, unescaped, err := parseEscape(s[i:])
			if err != nil {
				return nil, "", false, err
			}
			value = append(value, piece{c: unescaped})
			end, i = len(value), i+n
		case strings.IndexByte(specials, c) >= 0 && c != '=':
			return nil, "", false, fmt.Errorf(`unescaped %c (write \%c)`, c, c)
		default:
			value = append(value, piece{c: c, wild: c == '*'})
			if c != ' ' {
				end = len(value)
			}
			i++
		}
	}
	if end == 0 {
		return nil, "", false, errors.New("no value")
	}
	return value[:end], rest, more, nil
}

// parseEscape reads the escape that s begins with, and returns its length.
func parseEscape(s string) (n int, c byte, err error) {
	if len(s) >= 3 {
		hi, lo := unhex(s[1]), unhex(s[2])
		if hi >= 0 && lo >= 0 {
			return 3, byte(hi<<4 | lo), nil
		}
	}
	if len(s) >= 2 && strings.IndexByte(specials+" #*", s[1]) >= 0 {
		return 2, s[1], nil
	}
	return 0, 0, fmt.Errorf("%q is not an escape sequence", text.Clip(s[:min(len(s), 3)]))
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
