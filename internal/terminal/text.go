package terminal

import (
	"fmt"
	"strings"
	"unicode"
)

// Printable replaces what would make a terminal act or lie: names, messages
// and reasons come from whoever could push.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsGraphic(r) {
			return r
		}
		return '\uFFFD'
	}, s)
}

// QuoteShell writes a word so that a shell reads it as it is.
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

// Short returns the beginning of a sha.
func Short(sha string) string { return sha[:min(len(sha), 12)] }

// Clip shortens s to n characters.
func Clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// OrDash returns a mark for what is empty.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Plural writes a count and what is counted.
func Plural(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// Clean makes text that others chose fit for a line on a terminal.
func Clean(s string) string { return Printable(OneLine(s)) }
