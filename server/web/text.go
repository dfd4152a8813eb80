package web

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"
)

// indented returns JSON on lines of their own, its strings as they are; what is
// no JSON as it is.
func indented(text jsontext.Value) string {
	lines := text.Clone()
	if err := lines.Indent(jsontext.WithIndent("  ")); err != nil {
		return string(text)
	}
	return string(lines)
}

// unseen reports whether a browser would not show a character, or put others in
// another order by it. Line feeds, tabs and carriage returns are blanks.
func unseen(r rune) bool {
	switch r {
	case '\n', '\t', '\r':
		return false
	case '\u2028', '\u2029':
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// visible writes the characters that are not seen so that they are: text from
// elsewhere stays where it stands.
func visible(text string) string {
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

// ordered leaves out the characters that put others in another order, for where
// no element can keep a text in its place: titles and labels.
func ordered(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, text)
}

// escapeUnseen writes the characters that are not seen as JSON escapes them.
func escapeUnseen(text string) string {
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
