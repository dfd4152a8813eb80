package policy

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// ExcludesAuthor reports whether any requirement ignores evidence by those who wrote the
// commit. If so, Derive needs Facts.AuthorPeople.
func (c *Contract) ExcludesAuthor() bool {
	for i := range c.Requirements {
		if c.Requirements[i].ExcludeAuthor != AuthorCounts {
			return true
		}
	}
	return false
}

// knowsAuthor reports whether it is known who wrote a commit.
func knowsAuthor(authors []ledger.Author) bool {
	isKnown := func(a ledger.Author) bool { return FoldName(a.Name) != "" || FoldName(a.Email) != "" }
	return slices.ContainsFunc(authors, isKnown)
}

// byAuthors reports, for each piece of evidence, whether its signer wrote the commit, or the
// one that it is about.
func (f *Facts) byAuthors() []bool {
	own := newAuthorSet(f.Authors, f.AuthorPeople)
	sources := make([]*authorSet, len(f.Sources))
	list := make([]bool, len(f.Evidence))
	for i := range f.Evidence {
		e := &f.Evidence[i]
		list[i] = own.wrote(e)
		if e.Source == 0 || list[i] {
			continue
		}
		source := &sources[e.Source-1]
		if *source == nil {
			s := &f.Sources[e.Source-1]
			*source = newAuthorSet(s.Authors, s.AuthorPeople)
		}
		list[i] = (*source).wrote(e)
	}
	return list
}

// An authorSet holds those who wrote a commit.
type authorSet struct {
	people map[int64]bool
	names  map[string]bool
	sums   map[uint64]bool // of the names
}

func newAuthorSet(authors []ledger.Author, people []int64) *authorSet {
	set := &authorSet{make(map[int64]bool, len(people)), make(map[string]bool, 2*len(authors)),
		make(map[uint64]bool, 2*len(authors))}
	for _, id := range people {
		set.people[id] = true
	}
	for _, name := range AuthorNames(authors) {
		set.names[name], set.sums[sumASCII(name)] = true, true
	}
	return set
}

// wrote reports whether the signer of e is one of the authors.
func (s *authorSet) wrote(e *Evidence) bool {
	return e.Person != 0 && s.people[e.Person] || s.hasName(e.Signer.CN) || slices.ContainsFunc(e.Emails, s.hasName)
}

// hasName reports whether an author has a name. Most names are nobody's: their sums show
// that without folding them.
func (s *authorSet) hasName(name string) bool {
	return (!isASCII(name) || s.sums[sumASCII(name)]) && s.names[FoldName(name)]
}

// AuthorNames returns the names and e-mail addresses of authors in the form of FoldName.
func AuthorNames(authors []ledger.Author) []string {
	names := make([]string, 0, 2*len(authors))
	for _, a := range authors {
		for _, name := range []string{FoldName(a.Name), FoldName(a.Email)} {
			if name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

// FoldName returns a name or an e-mail address in the form in which authors are compared
// with signers: folded, without brackets, blanks and invisible characters. Databases store
// this form, so changing it takes a migration.
func FoldName(name string) string {
	if !isASCII(name) {
		return strings.Map(foldRune, identity.FoldText(name))
	}
	return strings.Map(foldASCII, name) // fast, since most names have only ASCII
}

func isASCII(name string) bool {
	for i := range len(name) {
		if name[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// sumASCII returns a sum (FNV-1a) of a name. Names of ASCII that fold to the same text, and
// this text, have the same sum.
func sumASCII(name string) uint64 {
	sum := uint64(14695981039346656037)
	for i := range len(name) {
		c := name[i]
		switch {
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		case c <= ' ' || c == '<' || c == '>' || c == '(' || c == ')' || c == '[' || c == ']' || c == '{' || c == '}':
			continue // a bracket or a blank, or a character that no name has
		}
		sum = (sum ^ uint64(c)) * 1099511628211
	}
	return sum
}

// foldRune is like foldASCII, and also drops other blanks and invisible characters.
func foldRune(r rune) rune {
	if unicode.In(r, unicode.White_Space, unicode.Cf, unicode.Variation_Selector) {
		return -1
	}
	return foldASCII(r)
}

// foldASCII folds a character of ASCII, or drops it if it is a bracket or a blank. It
// returns others unchanged.
func foldASCII(r rune) rune {
	switch {
	case 'A' <= r && r <= 'Z':
		return r - 'A' + 'a'
	case strings.ContainsRune("<>()[]{} \t\n\v\f\r", r):
		return -1
	}
	return r
}
