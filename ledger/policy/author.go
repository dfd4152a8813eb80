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
	for _, a := range f.Authors {
		names[FoldName(a.Name)], names[FoldName(a.Email)] = true, true
	}
	delete(names, "")

	isName := func(name string) bool { return names[FoldName(name)] }
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
	for i := range len(name) {
		if name[i] >= utf8.RuneSelf {
			return strings.Map(foldASCII, identity.FoldText(name))
		}
	}
	return strings.Map(foldASCII, name) // fast, since most names have only ASCII
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
