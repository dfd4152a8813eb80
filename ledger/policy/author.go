package policy

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// hasAuthor reports whether it is known who wrote the commit.
func (f *Facts) hasAuthor() bool {
	isKnown := func(a ledger.Author) bool { return FoldName(a.Name) != "" || FoldName(a.Email) != "" }
	return slices.ContainsFunc(f.Authors, isKnown)
}

// byAuthors reports, for each piece of evidence, whether its signer wrote the commit.
func (f *Facts) byAuthors() []bool {
	names := make(map[string]bool, 2*len(f.Authors))
	sums := make(map[uint64]bool, 2*len(f.Authors))
	for _, a := range f.Authors {
		for _, name := range []string{FoldName(a.Name), FoldName(a.Email)} {
			if name != "" {
				names[name], sums[sumASCII(name)] = true, true
			}
		}
	}

	// Most names are nobody's: their sums show that without folding them.
	isName := func(name string) bool { return (!isASCII(name) || sums[sumASCII(name)]) && names[FoldName(name)] }
	list := make([]bool, len(f.Evidence))
	for i := range f.Evidence {
		e := &f.Evidence[i]
		list[i] = e.Person != 0 && slices.Contains(f.AuthorPeople, e.Person) ||
			isName(e.Signer.CN) || slices.ContainsFunc(e.Emails, isName)
	}
	return list
}

// FoldName returns a name or an e-mail address in the form in which authors are compared
// with signers: folded, without brackets and blanks.
func FoldName(name string) string {
	if !isASCII(name) {
		return strings.Map(foldASCII, identity.FoldText(name))
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
