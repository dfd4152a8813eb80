package terminal

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// Printable replaces control characters, so that untrusted text cannot control the
// terminal: anyone who can push chooses names and messages.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if isPrintable(r) {
			return r
		}
		return '\uFFFD'
	}, s)
}

func isPrintable(r rune) bool { return r == '\n' || r == '\t' || unicode.IsGraphic(r) }

// QuoteShell quotes a word for a POSIX shell, if necessary.
func QuoteShell(s string) string {
	special := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-./:,@%+=", r)
	}
	if s != "" && !strings.ContainsFunc(s, special) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// OneLine returns the first line of s, without tabs.
func OneLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return strings.ReplaceAll(strings.TrimSpace(line), "\t", " ")
}

// Clip shortens s to at most n characters, the last of which is then an ellipsis.
func Clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// OrDash returns s, or "-" if s is empty.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Plural returns a count with its noun, such as "1 path" or "2 paths".
func Plural(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// Clean returns the first line of untrusted text, safe to print to a terminal.
func Clean(s string) string { return Printable(OneLine(s)) }

// Printf is like [fmt.Fprintf], but no text among the values begins a line: only the format does. So a text
// of somebody else cannot pass for a line of ledgerd.
func Printf(w io.Writer, format string, values ...any) {
	inline := slices.Clone(values)
	for i, v := range values {
		switch v := v.(type) {
		case string:
			inline[i] = Inline(v)
		case error, fmt.Stringer:
			inline[i] = Inline(fmt.Sprint(v))
		default:
			if text := reflect.ValueOf(v); text.Kind() == reflect.String {
				inline[i] = Inline(text.String())
			}
		}
	}
	fmt.Fprintf(w, format, inline...)
}

// Inline replaces line breaks.
func Inline(s string) string {
	return strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ").Replace(s)
}
