package rederive

import (
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/ancestry"
	"github.com/ledgerd/ledgerd/ledger/authors"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// maxSources is the number of commits with one tree between which evidence carries.
const maxSources = 10_000

// maxJudged limits judged: each takes time in proportion to those before.
const maxJudged = 1000

// A derived is the state of a commit that was derived, or why it is not known. Then isHighest reports whether it is
// the highest that there may be.
type derived struct {
	state     ledger.State
	why       string
	isHighest bool
}

// derive returns the state that follows from what the log has before an event, at its time. It ignores that the commit
// may be DEPLOYED.
func (d *derivation) derive(m moment) derived {
	v := d.at(m)
	contract, ok := v.contract()
	if !ok {
		return derived{why: unknownContract}
	}
	f, why := d.facts(v, &contract)
	d.seen.include(v.basis)
	if why != "" {
		return derived{why: why}
	}
	state, _ := contract.State(f, m.at)
	switch {
	case !v.lacks:
		return derived{state: state}
	case slices.ContainsFunc(f.Sources, func(s policy.Source) bool { return len(s.Claims) > 0 }):
		return derived{why: v.whyLacking(unreadMerge)}
	case contract.CarriesChanges() && mayCarry(&f):
		return derived{why: v.whyLacking(unreadSpans)}
	}

	byAnybody(&f)
	if least, _ := contract.State(f, m.at); least != state {
		return derived{state, v.whyLacking(unreadSpans), true}
	}
	return derived{state: state}
}

// mayCarry reports whether any review of a commit with the same tree does not carry by what is known of the history. It
// may then carry by objects that are not there, and replace other evidence.
func mayCarry(f *policy.Facts) bool {
	return slices.ContainsFunc(f.Carried, func(e policy.Evidence) bool {
		from := &f.Sources[e.Source-1]
		return e.Base != "" && e.IsReview() && (from.Spans[e.Base] == nil || !from.Bases[e.Base])
	})
}

// byAnybody says of the commits that reviews are about and whose authors are not known that anybody may have written
// them: no such review counts.
func byAnybody(f *policy.Facts) {
	for _, e := range slices.Concat(f.Evidence, f.Carried) {
		if e.Base == "" || !e.IsReview() {
			continue
		}
		spans := &f.Spans
		if e.Source != 0 {
			spans = &f.Sources[e.Source-1].Spans
		}
		if *spans == nil {
			*spans = make(map[string]*authors.Authorship)
		}
		if (*spans)[e.Base] == nil {
			(*spans)[e.Base] = new(authors.Authorship)
		}
	}
}

// facts returns what the log has of the commit in a view, as a contract reads it.
func (d *derivation) facts(v *view, contract *policy.Contract) (f policy.Facts, why string) {
	f = d.known(contract)
	before := make(said)
	for i := range d.commit.recs {
		rec := &d.commit.recs[i]
		if !v.hasOwn(rec.moment) {
			break
		}
		if why := d.add(&f, rec, before); why != "" {
			return f, why
		}
	}
	if why := d.carry(contract, &f, v); why != "" {
		return f, why
	}

	found, _ := ancestry.Complete(v, contract, d.commit.sha, &f) // a view returns no error
	for _, a := range found.Wrote {
		a.AuthorPeople, a.KnownAuthors = d.signers.Authors(a.Authors, a.SigningKeys)
	}
	return f, ""
}

// add adds an attestation of the commit to the facts, after what was said before.
func (d *derivation) add(f *policy.Facts, rec *record, before said) (why string) {
	f.Attested = true
	if _, ok := d.signers.Identity(rec.identity); !ok {
		return "the log does not have an identity that has signed for it, " + rec.identity
	}
	if d.isDistrusted(rec) {
		return ""
	}

	switch {
	case rec.ships: // judged with its environment
		d.seen.learnt = max(d.seen.learnt, rec.learnt)
		if d.shipped == 0 {
			d.shipped = rec.index
		}
	case !rec.isJudged:
		if rec.evidence.WhilePromotable, why = d.mayCount(rec, policy.HasRollback(f.Evidence)); why != "" {
			return why
		}
		rec.isJudged = true
	}
	f.Evidence = append(f.Evidence, d.present(rec, before))
	if rec.exception != nil {
		f.Exceptions = append(f.Exceptions, *rec.exception)
	}
	return ""
}

// mayCount reports whether an attestation of the commit may count for DEPLOYED, apart from what it ships.
func (d *derivation) mayCount(rec *record, wasRolledBack bool) (may bool, why string) {
	if d.judged > maxJudged {
		return false, "too many attestations were recorded while it was DEPLOYED"
	}
	if may, why = d.mayDeploy(rec, wasRolledBack); why == "" && may {
		may, why = d.wasPromotable(rec.moment)
	}
	return may, why
}

// wasPromotable reports whether the commit was PROMOTABLE when an attestation was recorded. A
// DEPLOYED commit may no longer meet the requirements.
func (d *derivation) wasPromotable(m moment) (was bool, why string) {
	state, _ := d.commit.stateBefore(m.index)
	if state != ledger.Deployed {
		return state == ledger.Promotable, ""
	}
	d.judged++
	at := d.derive(m)
	return at.state >= ledger.Promotable, at.why
}

// stateBefore returns the state of a commit before an event of the log, and since when.
func (c *commit) stateBefore(index int64) (state ledger.State, since moment) {
	state = ledger.Draft
	for _, s := range c.states {
		if s.index >= index {
			break
		}
		state, since = s.to, s.moment
	}
	return state, since
}

// mayDeploy reports whether an attestation may count for DEPLOYED although the commit may have been
// rolled back before.
func (d *derivation) mayDeploy(rec *record, wasRolledBack bool) (may bool, why string) {
	if !wasRolledBack {
		return true, ""
	}
	contract, ok := d.contractBefore(rec.index)
	if !ok {
		return false, unknownContract
	}
	f, why := d.facts(d.at(rec.moment), &contract)
	e := rec.evidence
	d.who(&e)
	return contract.MayDeploy(f, e, rec.isAgain, rec.at), why
}

// carry adds the evidence of other commits.
func (d *derivation) carry(contract *policy.Contract, f *policy.Facts, v *view) (why string) {
	if !contract.Carries() {
		return ""
	}
	if why := d.carryTree(contract, f, v); why != "" || !contract.CarriesMerges() {
		return why
	}
	return d.carryMerges(v, contract, f)
}

// carryTree adds the evidence of other commits with the same tree: the newest of each of them, if it depends on the
// commit whether it carries.
func (d *derivation) carryTree(contract *policy.Contract, f *policy.Facts, v *view) (why string) {
	siblings := d.siblings(d.commit)
	switch {
	case len(siblings) == 0:
		return ""
	case len(siblings) > maxSources:
		return "too many commits have the same tree"
	}

	about := topicOf
	if contract.CarriesChanges() {
		about = ownTopicOf
	}
	newest := make(map[topic]string) // attestations
	for i := range f.Evidence {
		newest[about(&f.Evidence[i])] = f.Evidence[i].Attestation
	}
	var carried []policy.Evidence
	for n, c := range siblings {
		if c.known == nil {
			return "the log does not have what is known of " + c.sha + ", which has the same tree"
		}
		f.Sources = append(f.Sources, d.source(c))
		for _, e := range d.evidenceOf(c, v) {
			e.Source = n + 1
			newest[about(&e)] = max(newest[about(&e)], e.Attestation)
			carried = append(carried, e)
		}
	}
	if len(newest) > policy.MaxTopics {
		return "the commits with the same tree have too much evidence"
	}

	for _, e := range carried {
		if newest[about(&e)] == e.Attestation {
			f.Carried = append(f.Carried, e)
		}
	}
	return ""
}

// carryMerges adds the evidence of commits that the commit merges, as somebody claims.
func (d *derivation) carryMerges(v *view, contract *policy.Contract, f *policy.Facts) (why string) {
	list, why := d.claims(v, contract)
	if why != "" {
		return why
	}
	for _, rec := range list {
		source := d.Replay.commit(rec.merge.Source.SHA)
		n := slices.IndexFunc(f.Sources, func(s policy.Source) bool { return s.Commit == source.sha })
		if n < 0 {
			if source.known == nil {
				return "the log does not have what is known of " + source.sha + ", which it merges"
			}
			n = len(f.Sources)
			f.Sources = append(f.Sources, d.mergedSource(v, source))
		}

		isNew := len(f.Sources[n].Claims) == 0
		m, why := d.claim(v, rec)
		if why != "" {
			return why
		}
		f.Sources[n].Claims = append(f.Sources[n].Claims, m)
		if isNew {
			d.carryMerged(v, source, n+1, f)
		}
	}
	if len(f.Carried) > policy.MaxTopics {
		return "the commits that it merges have too much evidence"
	}
	return ""
}

// claim returns a claim in the form that a contract reads.
func (d *derivation) claim(v *view, rec *record) (m policy.MergeClaim, why string) {
	e := rec.evidence
	d.who(&e)
	m = policy.MergeClaim{
		Attestation: e.Attestation, Kind: string(rec.merge.Kind), Signer: e.Signer, Person: e.Person,
		Individual: e.Individual, Side: &policy.Side{Commit: rec.merge.Parent.SHA},
	}
	if m.Side.Refused, why = d.refused(rec); why != "" || m.Side.Refused != "" {
		return m, why
	}
	m.Side.Met, why = d.askMainline(v, rec.merge.Parent.SHA)
	return m, why
}

// askMainline returns what a commit of the mainline meets, or why that is not known.
func (d *derivation) askMainline(v *view, sha string) (met policy.Met, why string) {
	for _, a := range d.mainline[sha] {
		if a.isFor(v.moment) {
			v.include(a.basis)
			return a.met, a.why
		}
	}
	switch {
	case d.below >= d.maxMainline:
		return nil, longMainline
	case d.derived >= maxAnswers:
		return nil, manyTimes
	}
	d.derived++

	below := &derivation{Replay: d.Replay, commit: d.Replay.commit(sha), branch: d.branch, below: d.below + 1}
	at := d.at(v.moment)
	met, why = below.meets(at)
	if why != longMainline {
		d.mainline[sha] = append(d.mainline[sha], mainlineAnswer{at.basis, met, why})
	}
	v.include(at.basis)
	return met, why
}

// meets returns what the commit meets as one of the mainline.
func (d *derivation) meets(v *view) (policy.Met, string) {
	contract, ok := v.contract()
	switch {
	case !ok:
		return nil, unknownContract
	case d.commit.known == nil:
		return nil, "the log does not have what is known of " + d.commit.sha + " on the mainline"
	}
	v.learnt = max(v.learnt, d.commit.logged.index)
	v.changed = max(v.changed, d.commit.last(v))
	f, why := d.facts(v, &contract)
	if why == "" && v.lacks {
		why = v.whyLacking(unreadMerge)
	}
	if why != "" {
		return nil, why
	}
	return contract.Met(f), ""
}

// last returns when the last attestation of a commit was recorded.
func (c *commit) last(v *view) (at ledger.Time) {
	for i := range c.recs {
		if !v.hasOwn(c.recs[i].moment) {
			break
		}
		at = c.recs[i].at
	}
	return at
}
