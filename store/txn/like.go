package txn

import "strings"

// Containing returns the pattern of LIKE, with the escape character !, for texts in lower
// case that contain a part. SQLite reads patterns only up to a zero byte, which no stored
// text has: a part with one has the pattern NULL, which nothing matches.
func Containing(part string) any {
	if strings.Contains(part, "\x00") {
		return nil
	}
	return "%" + strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(LowerASCII(part)) + "%"
}

// LowerASCII returns a text with its ASCII letters in lower case, as SQLite's lower does.
func LowerASCII(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}
