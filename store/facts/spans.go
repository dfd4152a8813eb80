package facts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/authors"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/history"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A wrote is who wrote commits, whose people are still to be read. Its Facts have the authorship.
type wrote struct {
	*Commit
	set func(*authors.Authorship)
}

// GatherSpans reads who wrote the commits that reviews are about, and which of these a mainline contains. The evidence
// must have been gathered.
func (fa *Facts) GatherSpans(rd txn.Reader, list []*Commit) error {
	var all []wrote
	for _, s := range list {
		if err := fa.gatherSpans(rd, s, &all); err != nil {
			return err
		}
	}
	if all == nil {
		return nil
	}

	commits := make([]*Commit, len(all))
	for i := range all {
		commits[i] = all[i].Commit
	}
	if err := GatherAuthors(rd, commits); err != nil {
		return err
	}
	for _, w := range all {
		f := &w.Facts
		w.set(&authors.Authorship{
			Authors: f.Authors, AuthorPeople: f.AuthorPeople, SigningKeys: w.Claims.Keys(), KnownAuthors: f.KnownAuthors,
			Proven: true, Several: true,
		})
	}
	return nil
}

// gatherSpans reads who wrote the commits that the reviews of a commit and of its sources are about.
func (fa *Facts) gatherSpans(rd txn.Reader, s *Commit, all *[]wrote) error {
	s.Gap, s.Facts.Spans = false, nil
	for i := range s.Facts.Sources {
		s.Facts.Sources[i].Spans, s.Facts.Sources[i].Bases = nil, nil
	}
	contract := s.Deriver.Contract
	for _, evidence := range [][]policy.Evidence{s.Facts.Evidence, s.Facts.Carried} {
		for i := range evidence {
			e := &evidence[i]
			if e.Base == "" || !e.IsReview() {
				continue
			}

			spans, head, needed := &s.Facts.Spans, s.SHA, contract.ExcludesAuthor()
			if e.Source != 0 {
				from := &s.Facts.Sources[e.Source-1]
				spans, head = &from.Spans, from.Commit
				needed = needed || slices.ContainsFunc(from.Claims, isAlive) || from.SameTree && contract.CarriesChanges()
			}
			if !needed {
				continue
			}
			if err := fa.spanOf(rd, s, head, e, spans, all); err != nil {
				return err
			}
		}
	}

	for i := range s.Facts.Sources {
		if err := fa.gatherSides(rd, s, &s.Facts.Sources[i], all); err != nil {
			return err
		}
	}
	return nil
}

// isAlive reports whether what the mainline meets now decides about a claim.
func isAlive(m policy.MergeClaim) bool { return m.Side != nil }

// spanOf reads who wrote the commits that a review of the head is about, unless that was read.
func (fa *Facts) spanOf(rd txn.Reader, s *Commit, head string, e *policy.Evidence,
	spans *map[string]*authors.Authorship, all *[]wrote,
) error {
	if _, ok := (*spans)[e.Base]; ok || len(*spans) >= maxBases {
		return nil
	}
	commits, known, err := fa.history.Between(rd, s.RepoID, e.Base, head)
	if err != nil {
		return err
	}
	s.Gap = s.Gap || !known
	if !known {
		return nil
	}

	if *spans == nil {
		*spans = make(map[string]*authors.Authorship)
	}
	set := *spans
	if w, ok := wroteBy(s.Deriver, commits, func(a *authors.Authorship) { set[e.Base] = a }); ok {
		set[e.Base] = nil
		*all = append(*all, w)
	}
	return nil
}

// gatherSides reads what the claims about a source of a commit rest on, and which bases of reviews of the source the
// commit contains.
func (fa *Facts) gatherSides(rd txn.Reader, s *Commit, from *policy.Source, all *[]wrote) (err error) {
	if from.SameTree && s.Deriver.Contract.CarriesChanges() {
		if from.Bases, err = fa.containedBases(rd, s, from, s.SHA); err != nil {
			return err
		}
	}
	for i := range from.Claims {
		side := from.Claims[i].Side
		if side == nil || side.Refused != "" {
			continue
		}
		if side.Bases, err = fa.containedBases(rd, s, from, side.Commit); err != nil {
			return err
		}
		if err := fa.writersOfMerge(rd, s, from.Claims[i].Kind, side, all); err != nil {
			return err
		}
	}
	return nil
}

// containedBases returns which bases of reviews of a source of a commit another one contains.
func (fa *Facts) containedBases(rd txn.Reader, s *Commit, from *policy.Source, sha string) (map[string]bool, error) {
	bases := make(map[string]bool)
	for base := range from.Spans {
		contains, err := fa.history.IsAncestor(rd, s.RepoID, base, sha)
		if err != nil {
			return nil, err
		}
		bases[base] = contains
		s.Gap = s.Gap || !contains
	}
	return bases, nil
}

// The limits of what is read of one commit. Beyond them, it is not known who wrote what a review is about.
const (
	maxBases       = 16   // of reviews of one commit
	maxSpanAuthors = 1000 // that one review is about
)

// wroteBy returns who wrote commits. It reports false if they are too many.
func wroteBy(d *Deriver, commits []history.Commit, set func(*authors.Authorship)) (w wrote, ok bool) {
	w = wrote{&Commit{CommitRow: new(CommitRow), Deriver: d}, set}
	listed := make(map[ledger.Author]bool)
	var keys []string
	for _, c := range commits {
		keys = append(keys, c.SigningKeys...)
		list := append([]ledger.Author{c.Author}, c.CoAuthors...)
		if !c.Committer.IsForge() || c.Author.IsForge() { // a forge that has pressed the button wrote nothing
			list = append(list, c.Committer)
		}
		for _, a := range list {
			if !listed[a] {
				listed[a] = true
				w.Facts.Authors = append(w.Facts.Authors, a)
			}
		}
	}
	slices.Sort(keys)
	w.Claims.SigningKeys = strings.Join(slices.Compact(keys), "\n")
	return w, len(listed) <= maxSpanAuthors
}

// writersOfMerge reads who wrote a clean merge in addition to its source: of a squash or a rebase the author and the
// co-authors, and of others nobody.
func (fa *Facts) writersOfMerge(rd txn.Reader, s *Commit, kind string, side *policy.Side, all *[]wrote,
) error {
	isWritten := kind == string(attestation.Squashed) || kind == string(attestation.Rebased)
	if !isWritten || !s.Deriver.Contract.ExcludesAuthor() {
		return nil
	}
	list, known, err := history.Read(rd, s.RepoID, []string{s.SHA})
	if err != nil {
		return fmt.Errorf("read who wrote a merge: %w", err)
	}
	if !known {
		side.Wrote = new(authors.Authorship) // anybody may have
		return nil
	}

	c := list[0]
	c.Committer, c.SigningKeys = c.Author, nil
	w, ok := wroteBy(s.Deriver, []history.Commit{c}, func(a *authors.Authorship) { side.Wrote = a })
	if !ok {
		side.Wrote = new(authors.Authorship)
		return nil
	}
	*all = append(*all, w)
	return nil
}
