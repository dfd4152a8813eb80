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

// A DN is the distinguished name of a signer: a common name, an organizational unit and
// an organization. Every parsed DN has a CN.
type DN struct{ CN, OU, O string }

// maxAttribute is the maximum length of an attribute of a DN or pattern, in bytes.
const maxAttribute = 256

// The attributes of a DN, in the order in which they are written.
const (
	attrCN = iota
	attrOU
	attrO
	attrCount
)

var attrNames = [attrCount]string{"cn", "ou", "o"}

// ParseDN parses a DN in the form of RFC 4514, such as cn=ci,ou=build,o=acme. The
// attributes may be in any order and surrounded by spaces. Each may occur once; cn is
// required, and attributes other than cn, ou and o are refused.
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

// String formats d with its attributes in the order cn, ou, o, omitting empty ones.
// ParseDN parses the text back to an equal DN. Equal DNs have equal texts.
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

// Name returns d as the subject of a certificate.
func (d DN) Name() pkix.Name {
	name := pkix.Name{CommonName: d.CN}
	if d.OU != "" {
		name.OrganizationalUnit = []string{d.OU}
	}
	if d.O != "" {
		name.Organization = []string{d.O}
	}
	return name
}

// subjectDN returns the DN in a certificate's subject. It refuses a subject without a
// CN, or with more than one CN, OU or O, because it would be ambiguous. It ignores
// other attributes, such as the country.
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

// nameValues returns those attributes of a certificate's name that are part of a DN.
func nameValues(name pkix.Name) (values [attrCount]string, err error) {
	names := name.Names
	if names == nil { // a template, not a parsed certificate
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

// attributeOf returns the attribute for an X.520 object identifier (2.5.4.x), or -1.
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

// specials are the characters that must be escaped in a value.
const specials = `,+"\<>;=`

// appendPart appends a value, or a part of one, in the form of RFC 4514. The arguments
// first and last report whether part starts and ends the value, where spaces must be
// escaped. Control and bidirectional characters are written in hex, so that they have no
// effect on a terminal.
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

// isHidden reports whether r is a control character, a line separator, or changes the
// direction of text. The set must never change, because the texts of DNs are stored.
func isHidden(r rune) bool {
	return unicode.IsControl(r) || r == 0x061c || r == 0x200e || r == 0x200f ||
		r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// A piece is one byte of a value, or a wildcard.
type piece struct {
	c    byte
	wild bool
}

// literal returns the text of a value. It ignores wildcards: a * in a DN is literal.
func literal(value []piece) (string, error) {
	text := make([]byte, len(value))
	for i, p := range value {
		text[i] = p.c
	}
	return string(text), checkValue(string(text))
}

// parseAttributes splits s into attributes and calls set with the value of each. An
// unescaped * in a value is a wildcard.
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
	for attr, attrName := range attrNames {
		if strings.EqualFold(name, attrName) {
			return attr, nil
		}
	}
	return 0, fmt.Errorf("unknown attribute %q (use cn, ou and o)", text.Clip(name))
}

// parseValue parses a value up to the next comma or the end of s.
func parseValue(s string) (value []piece, rest string, more bool, err error) {
	s = strings.TrimLeft(s, " ")
	if strings.HasPrefix(s, "#") {
		return nil, "", false, errors.New(`BER values are not supported (escape a leading # as \#)`)
	}

	end := 0 // length of the value without trailing spaces
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

// parseEscape parses the escape sequence at the start of s. It returns its length n.
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
