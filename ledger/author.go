package ledger

import (
	"slices"
	"strings"
	"unicode"
)

// An Author is the author of a commit, as recorded by git.
type Author struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

// maxAuthorLen is the maximum length of a name or an e-mail address, in bytes.
const maxAuthorLen = 320

func checkAuthor(field, s string) error {
	if len(s) > maxAuthorLen {
		return FieldErrorf(CodeInvalidField, field, "too long: %d bytes, at most %d", len(s), maxAuthorLen)
	}
	if strings.ContainsFunc(s, unicode.IsControl) {
		return FieldErrorf(CodeInvalidField, field, "contains a control character")
	}
	return nil
}

// SameAs reports whether two authors are the same person. It compares e-mail addresses,
// ignoring case, or names if one of them has no address.
func (a Author) SameAs(b Author) bool {
	if a.Email != "" && b.Email != "" {
		return strings.EqualFold(a.Email, b.Email)
	}
	return a.Name != "" && a.Name == b.Name
}

// CoAuthors returns the co-authors that a commit message names, in the order of their
// Co-authored-by trailers. It accepts the trailer on any line, in any case, since tools
// that squash commits put the trailers of each between its subject and the next.
func CoAuthors(message string) []Author {
	var list []Author
	for _, line := range CoAuthorTrailers(message) {
		_, value, _ := strings.Cut(line, ":")
		if a := parseAuthor(value); a != (Author{}) && !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return list
}

// CoAuthorTrailers returns the lines of a commit message that are Co-authored-by trailers,
// each joined with the lines that continue it.
func CoAuthorTrailers(message string) []string {
	var list []string
	inTrailer := false
	for line := range strings.FieldsFuncSeq(message, func(r rune) bool { return r == '\n' || r == '\r' }) {
		key, _, isTrailer := strings.Cut(line, ":")
		isTrailer = isTrailer && strings.EqualFold(strings.TrimSpace(key), "Co-authored-by")
		switch {
		case isTrailer:
			list = append(list, strings.TrimSpace(line))
		case inTrailer && strings.TrimLeft(line, " \t") != line:
			list[len(list)-1] += " " + strings.TrimSpace(line)
		}
		inTrailer = isTrailer || inTrailer && strings.TrimLeft(line, " \t") != line
	}
	return list
}

// parseAuthor parses the form Name <mail>. Without brackets, it is a name.
func parseAuthor(text string) Author {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	name, rest, _ := strings.Cut(text, "<")
	email, _, _ := strings.Cut(rest, ">")
	return Author{Name: strings.TrimSpace(name), Email: strings.TrimSpace(email)}
}
