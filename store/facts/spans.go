package facts

import (
	"strings"

	"github.com/ledgerd/ledgerd/ledger/ancestry"
	"github.com/ledgerd/ledgerd/ledger/authors"
	"github.com/ledgerd/ledgerd/store/txn"
)

// GatherSpans reads who wrote the commits that reviews are about, and which of these a mainline contains. The evidence
// must have been gathered.
func (fa *Facts) GatherSpans(rd txn.Reader, list []*Commit) error {
	var wrote []*authors.Authorship
	var of []*Commit // whose facts have the authors of wrote
	for _, s := range list {
		found, err := ancestry.Complete(fa.history.Of(rd, s.RepoID), s.Deriver.Contract, s.SHA, &s.Facts)
		if err != nil {
			return err
		}
		s.Gap = found.Gap
		for _, a := range found.Wrote {
			c := &Commit{CommitRow: new(CommitRow), Deriver: s.Deriver}
			c.Facts.Authors, c.Claims.SigningKeys = a.Authors, strings.Join(a.SigningKeys, "\n")
			wrote, of = append(wrote, a), append(of, c)
		}
	}
	if of == nil {
		return nil
	}

	if err := GatherAuthors(rd, of); err != nil {
		return err
	}
	for i, a := range wrote {
		a.AuthorPeople, a.KnownAuthors = of[i].Facts.AuthorPeople, of[i].Facts.KnownAuthors
	}
	return nil
}
