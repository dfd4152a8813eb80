package ledger

import (
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

// forges are the e-mail addresses under which forges themselves commit what people do in
// their pages.
var forges = [...]string{
	"noreply@github.com", // GitHub
	"noreply@gitlab.com", // GitLab, if it signs such commits
	"gitea@fake.local",   // Gitea and Forgejo
}

// IsForge reports whether a committer is a forge. Anybody can write its address as an author's.
func (a Author) IsForge() bool { return slices.Contains(forges[:], strings.ToLower(a.Email)) }

// MaxCoAuthors is the maximum number of co-authors that a commit message may name.
const MaxCoAuthors = 100

// CoAuthors returns the co-authors that a commit message names, in the order of their
// Co-authored-by trailers, at most one more than MaxCoAuthors. It accepts the trailer on any
// line, in any case, since tools that squash commits put the trailers of each between its
// subject and the next. A trailer may name several people; one that names nobody has an author
// without a name.
func CoAuthors(message string) []Author {
	var list []Author
	for _, line := range CoAuthorTrailers(message) {
		_, value, _ := strings.Cut(line, ":")
		for _, a := range parseAuthors(value) {
			if slices.Contains(list, a) {
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
		isTrailer = isTrailer && isCoAuthorKey(key)
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

// isCoAuthorKey reports whether a text is the key of the trailer. It may be an item of a list or
// quoted, and be written with blanks.
func isCoAuthorKey(key string) bool {
	const long = 100 // no key
	return len(key) < long && strings.EqualFold("coauthoredby", strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) {
			return r
		}
		return -1
	}, key))
}

// parseAuthors returns everybody whom the value of a trailer may name. Usual is Name <mail>, and
// several people are separated by a comma, a semicolon or a word such as "and". Since nothing says
// how to write it, a text with several meanings names the people of all of them.
func parseAuthors(text string) []Author {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)

	var p authorParser
	for hasAddress := true; hasAddress; {
		var before, inside string
		before, text, hasAddress = strings.Cut(text, "<")
		p.words(before)
		if !hasAddress {
			break
		}
		if inside, text, _ = strings.Cut(text, ">"); strings.Contains(inside, "@") {
			p.words(inside)
		} else {
			p.address(strings.TrimSpace(inside)) // of nobody, or in words
		}
	}
	return p.end()
}

// An authorParser collects the people in a trailer.
type authorParser struct {
	authors []Author
	// names has the people since the last address that a separator has ended, and word the words
	// after these.
	names, word []string
	// all has the words and separators since the last address.
	all []string
	// isComment reports whether the words follow an address, without a separator.
	isComment bool
}

// spaced puts blanks around separators and brackets, and removes quotes.
var spaced = strings.NewReplacer(",", " , ", ";", " ; ", "(", " (", ")", ") ", `"`, "")

func (p *authorParser) words(text string) {
	for word := range strings.FieldsSeq(spaced.Replace(text)) {
		switch strings.ToLower(word) {
		case ",", ";", "&", "+", "/", "|", "and":
			p.endName()
			if p.isComment = false; len(p.names) > 0 {
				p.all = append(p.all, word)
			}
			continue
		}
		switch {
		case len(p.word) == 0 && NamesNobody(word): // as - and **
		case strings.Contains(word, "@"):
			p.address(strings.Trim(word, "()[]{}'`*.,:;"))
		default:
			p.word, p.all = append(p.word, word), append(p.all, word)
		}
	}
}

// endName ends a name without an address.
func (p *authorParser) endName() {
	if len(p.word) > 0 {
		p.names, p.word = append(p.names, strings.Join(p.word, " ")), nil
	}
}

// address ends a name with an address. The names before it are of others, or of one person as a
// whole. Two words with a comma, such as Smith, Ann, are of one person.
func (p *authorParser) address(email string) {
	name := strings.Join(p.word, " ")
	if len(p.names) > 0 {
		p.authors = append(p.authors, Author{p.whole(), email})
	}
	isOne := len(p.names) == 1 && name != "" && slices.Equal(p.all[:2:2], []string{p.names[0], ","})
	for _, other := range p.names {
		a := Author{Name: other}
		if isOne {
			a.Email = email
		}
		p.authors = append(p.authors, a)
	}
	p.authors = append(p.authors, Author{name, email})
	p.names, p.word, p.all, p.isComment = nil, nil, nil, true
}

// end returns everybody. What follows the last address without a separator is a comment.
func (p *authorParser) end() []Author {
	if !p.isComment || len(p.names) > 0 {
		p.endName()
	}
	for _, name := range p.names {
		p.authors = append(p.authors, Author{Name: name})
	}
	if len(p.names) > 1 {
		p.authors = append(p.authors, Author{Name: p.whole()})
	}
	if len(p.authors) == 0 {
		return []Author{{}}
	}
	return p.authors
}

// whole returns the text since the last address.
func (p *authorParser) whole() string {
	text := strings.NewReplacer(" ,", ",", " ;", ";").Replace(strings.Join(p.all, " "))
	return strings.Trim(text, " ,;&+/|")
}
