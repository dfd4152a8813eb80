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

// isAuthor reports whether the signer of e wrote the commit.
func (f *Facts) isAuthor(e *Evidence) bool {
	if e.Person != 0 && slices.Contains(f.AuthorPeople, e.Person) {
		return true
	}
	for _, author := range f.Authors {
		for _, name := range []string{FoldName(author.Name), FoldName(author.Email)} {
			isSame := func(signer string) bool { return name != "" && FoldName(signer) == name }
			if isSame(e.Signer.CN) || slices.ContainsFunc(e.Emails, isSame) {
				return true
			}
		}
	}
	return false
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
