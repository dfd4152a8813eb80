// Package text checks and quotes what others sent, for use in errors, and writes the
// ledger's own types.
package text

import (
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Clip shortens s for use in an error's text.
func Clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// Quote returns s, shortened, in quotes.
func Quote(s string) string { return strconv.Quote(Clip(s)) }

// Entry names the i-th entry of a list the way errors name fields.
func Entry(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }

// IsHex reports whether s holds nothing but lower-case hex digits.
func IsHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// IsObject reports whether s is a whole git object id: 40 (SHA-1) or 64 (SHA-256)
// lower-case hex digits.
func IsObject(s string) bool { return (len(s) == 40 || len(s) == 64) && IsHex(s) }

// JSON writes a value of one of the ledger's own plain types, for which writing
// cannot fail: text that is not UTF-8 is mended.
func JSON(v any) []byte {
	data, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic(fmt.Sprintf("ledger: writing %T: %v", v, err))
	}
	return data
}
