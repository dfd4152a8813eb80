// Package authors finds out who wrote commits.
package authors

import (
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// An Authorship says who wrote a commit, or several, with the fields of policy.Facts.
type Authorship struct {
	Authors                   []ledger.Author
	AuthorPeople              []int64
	SigningKeys, KnownAuthors []string
	Proven                    bool
	// Several reports whether it is about several commits. Otherwise the second author is the committer.
	Several bool
}

// HasName reports whether any author has a name.
func (a *Authorship) HasName() bool {
	return slices.ContainsFunc(a.Authors, func(author ledger.Author) bool {
		return identity.FoldName(author.Name) != "" || identity.FoldName(author.Email) != ""
	})
}

// Strangers returns the authors whom the org does not know by any of their names. A forge is left
// out if it is the committer, which follows the author.
func (a *Authorship) Strangers() (list []ledger.Author) {
	const committer = 1
	isKnown := func(name string) bool { return slices.Contains(a.KnownAuthors, name) }
	for i, author := range a.Authors {
		isForge := i == committer && !a.Several && author.IsForge()
		if !isForge && !slices.ContainsFunc(identity.AuthorNames([]ledger.Author{author}), isKnown) {
			list = append(list, author)
		}
	}
	return list
}

// StrangeKeys returns the keys that signed the commit and that the org does not know.
func (a *Authorship) StrangeKeys() (list []string) {
	for _, key := range a.SigningKeys {
		if !slices.Contains(a.KnownAuthors, key) {
			list = append(list, key)
		}
	}
	return list
}

// A Set holds those who wrote a commit.
type Set struct {
	people    map[int64]bool
	names     map[string]bool
	sums      map[uint64]bool // of the names
	hasLogins bool            // among the names
}

// NewSet returns those who wrote what an authorship is about.
func NewSet(a *Authorship) *Set {
	set := &Set{people: make(map[int64]bool, len(a.AuthorPeople)), names: make(map[string]bool, 2*len(a.Authors)),
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

// A Signer has the names of a signer, with their sums.
type Signer struct {
	id    int64 // of the individual
	names []string
	sums  []uint64
	plain []bool
}

// Set sets the signer to an individual, by its id or 0, with a CN and emails.
func (n *Signer) Set(individual int64, cn string, emails []string) {
	n.id = individual
	n.names = append(append(n.names[:0], cn), emails...)
	n.sums, n.plain = n.sums[:0], n.plain[:0]
	for _, name := range n.names {
		sum, isPlain := identity.SumName(name)
		n.sums, n.plain = append(n.sums, sum), append(n.plain, isPlain && !strings.HasSuffix(name, "."))
	}
}

// Wrote reports whether a signer is one of the authors. Most names are nobody's: their sums show that
// without folding them.
func (s *Set) Wrote(n *Signer) bool {
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
