package terminal

import (
	"bytes"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/go-json-experiment/json"
)

// WriteJSON writes v to w as indented JSON, safe to print to a terminal.
func WriteJSON(w io.Writer, v any) error {
	text, err := json.Marshal(v, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	_, err = w.Write(append(EscapeJSON(text), '\n'))
	return err
}

// EscapeJSON escapes the characters of a JSON text that a terminal does not show, such
// as U+202E, which reverses what follows. The values stay the same.
func EscapeJSON(text []byte) []byte {
	// JSON has such characters only in strings.
	isHidden := func(r rune) bool { return r != '\n' && !unicode.IsGraphic(r) }
	if !bytes.ContainsFunc(text, isHidden) {
		return text
	}

	var escaped []byte
	for _, r := range string(text) {
		switch {
		case !isHidden(r):
			escaped = utf8.AppendRune(escaped, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			escaped = fmt.Appendf(escaped, `\u%04x\u%04x`, high, low)
		default:
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		}
	}
	return escaped
}
