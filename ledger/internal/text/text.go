// Package text validates untrusted text, decodes its base64 and quotes it for error messages, and
// marshals the ledger's own types.
package text

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Clip truncates s to about 80 bytes, for use in an error message.
func Clip(s string) string { return ClipAt(s, 80) }

// ClipAt is like Clip, for texts that are longer.
func ClipAt(s string, most int) string {
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// Quote returns s, clipped and in quotes.
func Quote(s string) string { return strconv.Quote(Clip(s)) }

// Entry returns the field name of the i-th entry of a list: field[i].
func Entry(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }

// IsHex reports whether s consists of lower-case hex digits.
func IsHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// IsObject reports whether s is a full git object id: 40 (SHA-1) or 64 (SHA-256)
// lower-case hex digits.
func IsObject(s string) bool { return (len(s) == 40 || len(s) == 64) && IsHex(s) }

// JSON marshals a value of one of the ledger's own plain types, which cannot fail.
// Invalid UTF-8 is replaced.
func JSON(v any) []byte {
	data, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic(fmt.Sprintf("ledger: marshal %T: %v", v, err))
	}
	return data
}

// Into sets *v to what parse returns for a text, unless that is an error.
func Into[T any](v *T, text []byte, parse func(string) (T, error)) error {
	parsed, err := parse(string(text))
	if err == nil {
		*v = parsed
	}
	return err
}

// JoinFirst joins the first three items and counts the others.
func JoinFirst(items []string, joint string) string {
	const few = 3
	if len(items) <= few {
		return strings.Join(items, joint)
	}
	return strings.Join(items[:few], joint) + joint + strconv.Itoa(len(items)-few) + " more"
}
