package ledger

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
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
// ignoring case, or names if one of them has no address. Names and addresses that name
// nobody are none.
func (a Author) SameAs(b Author) bool {
	if !NamesNobody(a.Email) && !NamesNobody(b.Email) {
		return strings.EqualFold(a.Email, b.Email)
	}
	return !NamesNobody(a.Name) && a.Name == b.Name
}

// NamesNobody reports whether a name or an e-mail address has only punctuation, such as the
// "-" that tools write if they know no name. An empty one names nobody either.
func NamesNobody(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool {
		return r >= utf8.RuneSelf || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	})
}

// MaxCoAuthors is the maximum number of co-authors that a commit message may name.
const MaxCoAuthors = 100

// CoAuthors returns the co-authors that a commit message names, in the order of their
// Co-authored-by trailers, at most one more than MaxCoAuthors. It accepts the trailer on any
// line, in any case, since tools that squash commits put the trailers of each between its
// subject and the next. A trailer may name several people.
func CoAuthors(message string) []Author {
	var list []Author
	for _, line := range CoAuthorTrailers(message) {
		_, value, _ := strings.Cut(line, ":")
		for a := range parseAuthors(value) {
			if a == (Author{}) || slices.Contains(list, a) {
				continue
			}
			if list = append(list, a); len(list) > MaxCoAuthors {
				return list
			}
		}
	}
	return list
}

// CoAuthorTrailers returns the lines of a commit message that are Co-authored-by trailers,
// each joined with the lines that continue it, up to an empty line.
func CoAuthorTrailers(message string) []string {
	var trailers [][]string // by line
	inTrailer := false
	for line := range strings.Lines(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(message)) {
		key, _, isTrailer := strings.Cut(line, ":")
		isTrailer = isTrailer && strings.EqualFold(strings.TrimSpace(key), "Co-authored-by")
		text := strings.TrimSpace(line)
		continues := inTrailer && text != "" && strings.TrimLeft(line, " \t") != line
		switch {
		case isTrailer:
			trailers = append(trailers, []string{text})
		case continues:
			trailers[len(trailers)-1] = append(trailers[len(trailers)-1], text)
		}
		inTrailer = isTrailer || continues
	}

	var list []string
	for _, lines := range trailers {
		list = append(list, strings.Join(lines, " "))
	}
	return list
}

// separators are the characters between people in a trailer.
const separators = " \t,;&/+|"

// parseAuthors returns the people in a text of the form Name <mail>, Name <mail>. What follows
// the last address is a comment unless it has a comma.
func parseAuthors(text string) iter.Seq[Author] {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)

	return func(yield func(Author) bool) {
		name, rest, hasAddress := strings.Cut(text, "<")
		for isFirst := true; hasAddress; isFirst = false {
			email, after, _ := strings.Cut(rest, ">")
			if !isFirst {
				name = strings.TrimPrefix(strings.TrimLeft(name, separators), "and ")
			}
			if !yield(Author{Name: strings.TrimSpace(name), Email: strings.TrimSpace(email)}) {
				return
			}

			name, rest, hasAddress = strings.Cut(after, "<")
			if !hasAddress && !strings.ContainsAny(name, ",;") {
				return
			}
		}

		for _, name := range parseNames(name) {
			if !yield(Author{Name: name}) {
				return
			}
		}
	}
}

// parseNames returns the names in a text without brackets. If it has commas, it is a list or
// one name, such as Smith, Ann: both count. Addresses have no comma.
func parseNames(text string) []string {
	text = strings.Trim(text, separators)
	names := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ';' })
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	if len(names) > 1 && !strings.Contains(text, "@") {
		names = append(names, text)
	}
	return names
}
