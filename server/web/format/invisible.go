package format

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"
)

// Indented indents JSON without changing its strings. It returns text that is not JSON
// unchanged.
func Indented(text []byte) string {
	lines := jsontext.Value(text).Clone()
	if err := lines.Indent(jsontext.WithIndent("  ")); err != nil {
		return string(text)
	}
	return string(lines)
}

// invisible reports whether a browser does not show a character, or reorders other
// characters because of it. Line feeds, tabs and carriage returns count as visible.
func invisible(r rune) bool {
	switch r {
	case '\n', '\t', '\r':
		return false
	case '\u2028', '\u2029':
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Visible replaces invisible characters with visible ones, so that untrusted text
// cannot affect the text around it.
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
		case invisible(r):
			fmt.Fprintf(&b, "[U+%04X]", r)
		default:
			b.WriteRune(r) // invalid UTF-8 becomes U+FFFD
		}
	}
	return b.String()
}

// Ordered removes the characters that reorder others (Unicode Bidi_Control). It is for
// titles and labels, where no element can isolate the text.
func Ordered(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, text)
}

// EscapeInvisible replaces invisible characters with JSON escapes.
func EscapeInvisible(text string) string {
	if !strings.ContainsFunc(text, invisible) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if !invisible(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}
