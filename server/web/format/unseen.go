package format

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"
)

// Indented returns JSON indented, its strings as they are. It returns a text that
// is not JSON unchanged.
func Indented(text []byte) string {
	lines := jsontext.Value(text).Clone()
	if err := lines.Indent(jsontext.WithIndent("  ")); err != nil {
		return string(text)
	}
	return string(lines)
}

// unseen reports whether a browser does not show a character, or shows other
// characters in another order because of it. Line feeds, tabs and carriage
// returns count as blanks.
func unseen(r rune) bool {
	switch r {
	case '\n', '\t', '\r':
		return false
	case '\u2028', '\u2029':
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Visible replaces characters that a browser does not show with visible ones, so
// that text from outside cannot affect its surroundings.
func Visible(text string) string {
	var b strings.Builder
	for _, r := range strings.ReplaceAll(text, "\r\n", "\n") {
		switch {
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r < ' ':
			b.WriteRune('␀' + r)
		case r == 0x7f:
			b.WriteRune('␡')
		case unseen(r):
			fmt.Fprintf(&b, "[U+%04X]", r)
		default:
			b.WriteRune(r) // what is not UTF-8 becomes U+FFFD
		}
	}
	return b.String()
}

// Ordered removes the characters that change the order of others. It is for
// titles and labels, where no element can isolate the text.
func Ordered(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, text)
}

// EscapeUnseen replaces characters that a browser does not show with JSON escapes.
func EscapeUnseen(text string) string {
	if !strings.ContainsFunc(text, unseen) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if !unseen(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}
