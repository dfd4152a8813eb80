package policy

import (
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// ExcludesAuthor reports whether any requirement ignores evidence by those who wrote the
// commit. If so, Derive needs AuthorPeople and KnownAuthors.
func (c *Contract) ExcludesAuthor() bool { return c.authorRule() != AuthorCounts }

// NeedsKnownAuthors reports whether any requirement needs to know those who wrote the commit as
// somebody of the org.
func (c *Contract) NeedsKnownAuthors() bool { return c.authorRule() == KnownAuthorExcluded }

// authorRule returns the strictest rule of any requirement.
func (c *Contract) authorRule() (rule AuthorRule) {
	for i := range c.Requirements {
		rule = max(rule, c.Requirements[i].ExcludeAuthor)
	}
	return rule
}

// authorships returns who wrote the commit, followed by who wrote each source.
func (f *Facts) authorships() []Authorship {
	list := []Authorship{{f.Authors, f.AuthorPeople, f.SigningKeys, f.KnownAuthors, f.Proven}}
	for i := range f.Sources {
		list = append(list, f.Sources[i].Authorship)
	}
	return list
}

// satisfies returns the strictest rule, up to the given one, that knows who wrote the commit.
func (a *Authorship) satisfies(upTo AuthorRule) AuthorRule {
	switch {
	case !a.hasName():
		return AuthorCounts
	case upTo == AuthorExcluded || !a.Proven:
		return AuthorExcluded
	case upTo == ProvenAuthorExcluded || a.strangers() != nil || a.strangeKeys() != nil:
		return ProvenAuthorExcluded
	}
	return KnownAuthorExcluded
}

// hasName reports whether any author has a name.
func (a *Authorship) hasName() bool {
	return slices.ContainsFunc(a.Authors, func(author ledger.Author) bool {
		return identity.FoldName(author.Name) != "" || identity.FoldName(author.Email) != ""
	})
}

// strangers returns the authors whom the org does not know by any of their names. A forge is left
// out if it is the committer, which follows the author.
func (a *Authorship) strangers() (list []ledger.Author) {
	const committer = 1
	isKnown := func(name string) bool { return slices.Contains(a.KnownAuthors, name) }
	for i, author := range a.Authors {
		isForge := i == committer && author.IsForge()
		if !isForge && !slices.ContainsFunc(identity.AuthorNames([]ledger.Author{author}), isKnown) {
			list = append(list, author)
		}
	}
	return list
}

// strangeKeys returns the keys that signed the commit and that the org does not know.
func (a *Authorship) strangeKeys() (list []string) {
	for _, key := range a.SigningKeys {
		if !slices.Contains(a.KnownAuthors, key) {
			list = append(list, key)
		}
	}
	return list
}

// HasUnknownAuthor reports whether the org does not know everybody who wrote the commit, or a key
// that signed it. If the commit is not proven, somebody must be named.
func (f *Facts) HasUnknownAuthor() bool {
	own := f.authorships()[0]
	return own.Proven && !own.hasName() || own.strangers() != nil || own.strangeKeys() != nil
}

// An authorSet holds those who wrote a commit.
type authorSet struct {
	people    map[int64]bool
	names     map[string]bool
	sums      map[uint64]bool // of the names
	hasLogins bool            // among the names
}

func newAuthorSet(a *Authorship) *authorSet {
	set := &authorSet{people: make(map[int64]bool, len(a.AuthorPeople)), names: make(map[string]bool, 2*len(a.Authors)),
		sums: make(map[uint64]bool, 2*len(a.Authors))}
	for _, id := range a.AuthorPeople {
		set.people[id] = true
	}
	for _, name := range identity.AuthorNames(a.Authors) {
		sum, _ := identity.SumName(name)
		set.names[name], set.sums[sum] = true, true
		set.hasLogins = set.hasLogins || strings.Contains(name, ":")
	}
	return set
}

// A signerNames has the names of a signer, with their sums.
type signerNames struct {
	id    int64 // of the individual
	names []string
	sums  []uint64
	plain []bool
}

// setTo sets the names to those of the signer of e.
func (n *signerNames) setTo(e *Evidence) {
	n.id = e.individual().id
	n.names = append(append(n.names[:0], e.Signer.CN), e.Emails...)
	n.sums, n.plain = n.sums[:0], n.plain[:0]
	for _, name := range n.names {
		sum, isPlain := identity.SumName(name)
		n.sums, n.plain = append(n.sums, sum), append(n.plain, isPlain && !strings.HasSuffix(name, "."))
	}
}

// wrote reports whether a signer is one of the authors. Most names are nobody's: their sums show that
// without folding them.
func (s *authorSet) wrote(n *signerNames) bool {
	if n.id != 0 && s.people[n.id] {
		return true
	}
	for i, name := range n.names {
		may := s.sums[n.sums[i]] || !n.plain[i] || s.hasLogins && strings.Contains(name, "@")
		if may && s.names[identity.FoldName(name)] {
			return true
		}
	}
	return false
}
