package rederive

import (
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/ancestry"
	"github.com/ledgerd/ledgerd/ledger/authors"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// A derivation derives the state of one commit.
type derivation struct {
	*Replay
	commit *commit
	branch string // the default one
	// below is how many commits of the mainline are above.
	below int
	// seen is what the derived states depend on.
	seen basis
	// judged counts the attestations that were recorded while the commit was DEPLOYED. For each of them,
	// it is derived whether the commit was PROMOTABLE.
	judged int
	// shipped is the first deployment of the commit whose delivery was judged, or 0.
	shipped int64
}

// Reasons why a state is not derived again.
const (
	unknownContract = "the contract was changed while this was verified (run it again)"
	unreadSigners   = "its authors or signers may have signed in other repos, whose addresses are not read (verify those)"
	blockedOverlaps = "the contract blocks overlaps with other commits, which are not read " + seeRadar
	seeRadar        = "('ledgerd radar' shows them)"
	unreadShipped   = "it depends on the commits that a deployment shipped"
	sinceDeployed   = "what is known of it, or of who signs, has changed since it was deployed"
	unreadSpans     = "it depends on who wrote the commits that a review is about"
	lateObjects     = "objects have become known since its state was derived, and there are more such commits than the " +
		"ledger derives again then"

	earlyMerge = "it is a merge that was claimed in an early release, and what carries from the merged commits is not " +
		"derived again (verify those)"
	manyClaims      = "it has more claims of merges than count at once"
	distrustedClaim = "a claim of a merge may have been replaced by one whose signer is distrusted now"
	longMainline    = "the mainline below it is too long"
	manyTimes       = "the mainline changed too often"
	unreadMerge     = "it rests on merges with a mainline"
)

// known returns what is known of the commit, as a contract reads it, without evidence.
func (d *derivation) known(contract *policy.Contract) policy.Facts {
	f := d.commit.known.Policy(contract.Targets, d.branch)
	f.RegisteredAt = d.commit.first.at
	f.AuthorPeople, f.KnownAuthors = d.signers.Authors(f.Authors, f.SigningKeys)
	f.Changes, f.Verdicts = d.commit.paths, d.verdicts
	return f
}

// said has the latest evidence of a commit by what it is about.
type said map[subject]policy.Evidence

// A subject is what a person's evidence is about.
type subject struct {
	person          int64
	predicate, slot string
}

// present returns the evidence of a record, after what was said before of its commit.
func (d *derivation) present(rec *record, before said) policy.Evidence {
	e := rec.evidence
	d.who(&e)
	about := subject{e.Person, e.Predicate, e.Slot}
	old, ok := before[about]
	if ok {
		e.FinishedAt = policy.Finished([]policy.Evidence{old}, &e)
	}
	if !ok || e.Replaces(&old) {
		before[about] = e
	}
	return e
}

// who sets the person and the individual of evidence by its signer.
func (r *Replay) who(e *policy.Evidence) {
	e.Person = r.signers.Person(e.Signer)
	e.Individual = r.signers.Individual(e.Person)
}

// isDistrusted reports whether the identity of an attestation is distrusted since a time before
// it was recorded.
func (r *Replay) isDistrusted(rec *record) bool {
	e, _ := r.signers.Identity(rec.identity)
	return e.DistrustedSince > 0 && e.DistrustedSince <= rec.at
}

// A topic is what evidence of a tree is about: only the newest carries.
type topic struct {
	predicate, slot, signer string
	stated                  bool // an outcome
	source                  int  // as in policy.Evidence; 0 for all commits with the tree
}

func topicOf(e *policy.Evidence) topic {
	return topic{e.Predicate, e.Slot, e.Signer.String(), e.Status != ledger.Recorded, 0}
}

// ownTopicOf returns what evidence is about if it replaces none of other commits.
func ownTopicOf(e *policy.Evidence) topic {
	t := topicOf(e)
	t.source = e.Source
	return t
}

// source returns a commit with the same tree.
func (r *Replay) source(c *commit) policy.Source {
	s := policy.Source{Commit: c.sha, SameTree: true, Authorship: authors.Authorship{
		Authors: c.known.Authors(), SigningKeys: c.known.SigningKeys, Proven: true,
	}}
	s.AuthorPeople, s.KnownAuthors = r.signers.Authors(s.Authors, s.SigningKeys)
	return s
}

// evidenceOf returns the evidence of another commit in a view.
func (d *derivation) evidenceOf(c *commit, v *view) (list []policy.Evidence) {
	before := make(said)
	for i := range c.recs {
		rec := &c.recs[i]
		if !v.has(rec.moment) {
			break
		}
		if !d.isDistrusted(rec) {
			list = append(list, d.present(rec, before))
		}
	}
	return list
}

// claims returns the claims about the commit that count. They are in the order of their recording.
func (d *derivation) claims(v *view, contract *policy.Contract) (list []*record, why string) {
	var all []*record
	for i := range d.commit.recs {
		rec := &d.commit.recs[i]
		if !v.hasOwn(rec.moment) {
			break
		}
		if rec.merge != nil && rec.evidence.Status == ledger.Pass {
			all = append(all, rec)
		}
	}
	if len(all) > ledger.MaxMergeClaims {
		return nil, manyClaims
	}

	latest := ancestry.Latest(all, func(rec **record) ancestry.Claim {
		return ancestry.Claim{Source: (*rec).merge.Source.SHA, Person: d.signers.Person((*rec).evidence.Signer)}
	})
	for _, rec := range latest {
		switch {
		case d.isDistrusted(rec) && len(latest) < len(all):
			return nil, distrustedClaim
		case d.isDistrusted(rec):
			continue
		case rec.evidence.Base == "" && contract.MayCarry(rec.evidence.Signer):
			return nil, earlyMerge
		case rec.evidence.Base != "":
			list = append(list, rec)
		}
	}
	return list, ""
}

// refused says why nothing carries by a claim about the commit, by what the ledger knew when it was recorded.
func (d *derivation) refused(rec *record) (reason, why string) {
	if rec.isWeighed {
		return rec.refused, rec.why
	}
	v := d.at(rec.moment)
	var c ancestry.Proven
	if d.commit.tree != "" && v.has(d.commit.proven) {
		c = ancestry.Proven{SHA: d.commit.sha, Tree: d.commit.tree}
		if o := v.object(c.SHA); o != nil {
			c.Parents = o.Parents
		}
	}
	rec.refused, _ = ancestry.WhyRefused(v, c, rec.merge) // a view returns no error
	if v.lacks {
		rec.why = v.whyLacking(unreadMerge)
	}
	rec.isWeighed = true
	return rec.refused, rec.why
}

// mergedSource returns a commit that is merged.
func (d *derivation) mergedSource(v *view, source *commit) policy.Source {
	v.learnt = max(v.learnt, source.logged.index)
	s := d.source(source)
	s.Proven = source.tree != "" && v.has(source.proven)
	s.SameTree = s.Proven && source.tree == d.commit.tree
	return s
}

// carryMerged adds the evidence of a commit that is merged, which is the source with the given number.
func (d *derivation) carryMerged(v *view, source *commit, number int, f *policy.Facts) {
	isKnown := make(map[string]bool, len(f.Carried))
	for i := range f.Carried {
		isKnown[f.Carried[i].Attestation] = true
	}
	for _, e := range d.evidenceOf(source, v) {
		if !isKnown[e.Attestation] {
			e.Source = number
			f.Carried = append(f.Carried, e)
		}
	}
}
