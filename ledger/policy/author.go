package policy

import (
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// hasAuthor reports whether it is known who wrote the commit.
func (f *Facts) hasAuthor() bool {
	return slices.ContainsFunc(f.Authors, func(a ledger.Author) bool { return FoldName(a.Name+a.Email) != "" })
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
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("<>()[]{} ", r) {
			return -1
		}
		return r
	}, identity.FoldText(name))
}
