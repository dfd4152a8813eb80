package policy

import (
	"github.com/ledgerd/ledgerd/ledger/authors"
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
func (f *Facts) authorships() []authors.Authorship {
	list := []authors.Authorship{{
		Authors: f.Authors, AuthorPeople: f.AuthorPeople, SigningKeys: f.SigningKeys, KnownAuthors: f.KnownAuthors,
		Proven: f.Proven,
	}}
	for i := range f.Sources {
		list = append(list, f.Sources[i].Authorship)
	}
	return list
}

// satisfied returns the strictest rule, up to the given one, that knows who wrote the commit.
func satisfied(a *authors.Authorship, upTo AuthorRule) AuthorRule {
	switch {
	case !a.HasName():
		return AuthorCounts
	case upTo == AuthorExcluded || !a.Proven:
		return AuthorExcluded
	case upTo == ProvenAuthorExcluded || a.Strangers() != nil || a.StrangeKeys() != nil:
		return ProvenAuthorExcluded
	}
	return KnownAuthorExcluded
}

// HasUnknownAuthor reports whether the org does not know everybody who wrote the commit, or a key
// that signed it. If the commit is not proven, somebody must be named.
func (f *Facts) HasUnknownAuthor() bool {
	own := f.authorships()[0]
	return own.Proven && !own.HasName() || own.Strangers() != nil || own.StrangeKeys() != nil
}
