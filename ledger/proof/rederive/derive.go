package rederive

import (
	"fmt"
	"math"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/authors"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// maxLag is how long a ledger may take until states agree with a contract or an identity that
// was changed, or with evidence that has expired.
const maxLag = time.Minute

// maxSources is the number of commits with one tree between which evidence carries.
const maxSources = 10_000

// Check derives the state of a commit again, in a repo with the given default branch, and
// compares it with the last one in the log. If that cannot be decided, why says so. The error
// says that the state does not follow. A DEPLOYED commit stays so: it must have become so, and
// not have been rolled back.
func (r *Replay) Check(sha, defaultBranch string, now ledger.Time) (state ledger.State, why string, err error) {
	d := &derivation{Replay: r, commit: r.commit(sha), branch: defaultBranch}
	logged, since := d.commit.stateBefore(math.MaxInt64)
	if d.commit.known == nil {
		return logged, "it is not known what it is", nil
	}
	if logged == ledger.Deployed {
		if why, err = d.checkDeployed(since); err == nil && why == "" {
			why, err = d.checkStanding(since)
		}
	} else {
		why, err = d.checkPresent(logged, now)
	}
	return logged, why, err
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

// A derivation derives the state of one commit.
type derivation struct {
	*Replay
	commit *commit
	branch string // the default one
	// carriedAt is when the newest evidence that may carry was recorded.
	carriedAt ledger.Time
	// judged counts the attestations that were recorded while the commit was DEPLOYED. For each of them,
	// it is derived whether the commit was PROMOTABLE.
	judged int
}

// maxJudged limits judged: each takes time in proportion to those before.
const maxJudged = 1000

// checkPresent checks a state that must follow from all evidence there is.
func (d *derivation) checkPresent(logged ledger.State, now ledger.Time) (why string, err error) {
	end := moment{math.MaxInt64, now}
	derived, why := d.derive(end)
	if isDecided := why == unreadObjects && derived < logged; why != "" && !isDecided {
		return why, nil
	}
	contract, _ := d.contractBefore(end.index)
	blocks := contract.Radar.Blocks()
	switch {
	case derived == logged && blocks && logged >= ledger.Promotable:
		return blockedOverlaps, nil
	case derived == logged:
		return "", nil
	case blocks && derived >= ledger.Promotable:
		return "it would be " + derived.String() + " without overlaps with other commits, which are not read " + seeRadar, nil
	}

	end.at = now.Add(-maxLag)
	if before, _ := d.derive(end); before == logged || d.changedAt() > end.at {
		return "the ledger may still be deriving it again, as a contract, an identity or evidence has changed in the last " +
			"minute (run it again in a minute)", nil
	}
	if d.hasUnread && (contract.NeedsKnownAuthors() || derived > logged) {
		return unreadSigners, nil
	}
	return "", verify.Derived(logged, derived)
}

// changedAt returns when a contract, an identity, or evidence that may carry has last changed.
func (d *derivation) changedAt() ledger.Time {
	return max(d.versions[len(d.versions)-1].at, d.trusted.at, d.joined.at, d.carriedAt)
}

// checkDeployed checks a commit that has become DEPLOYED at the given moment.
func (d *derivation) checkDeployed(since moment) (why string, err error) {
	derived, why := d.derive(since)
	if isDecided := why == unreadObjects && derived != ledger.Deployed; why != "" && !isDecided {
		return why, nil
	}
	if derived != ledger.Deployed {
		if max(d.commit.logged.index, d.trusted.index, d.joined.index) > since.index {
			return "what is known of it, or of who signs, has changed since it was deployed", nil
		}
		if contract, _ := d.contractBefore(since.index); d.hasUnread && contract.NeedsKnownAuthors() {
			return unreadSigners, nil
		}
		return "", fmt.Errorf("it was DEPLOYED at %s, and by the evidence in the log it was %s then", since.at, derived)
	}

	if contract, _ := d.contractBefore(since.index); contract.Radar.Blocks() {
		why = blockedOverlaps
	}
	for i := range d.commit.recs {
		rec := &d.commit.recs[i]
		if rec.index < since.index || d.isDistrusted(rec) {
			continue
		}
		contract, ok := d.contractBefore(rec.index)
		if !ok {
			return unknownContract, nil
		}
		if !contract.RollsBack(d.known(&contract), rec.evidence) {
			continue
		}
		after, unknown := d.derive(moment{rec.index + 1, rec.at}) // the deployments of others may still count
		if unknown != "" {
			return unknown, nil
		}
		if after != ledger.Deployed {
			return "", fmt.Errorf("it is DEPLOYED, and %s has rolled it back", rec.evidence.Attestation)
		}
	}
	return why, nil
}

// checkStanding checks the last standing that the log has of a commit which is DEPLOYED since the
// given moment.
func (d *derivation) checkStanding(since moment) (why string, err error) {
	logged := d.commit.standing
	if logged.index <= since.index {
		return "", nil
	}
	derived, why := d.derive(logged.moment)
	switch {
	case why != "" || min(derived, ledger.Promotable) == logged.to:
		return why, nil
	case max(d.commit.logged.index, d.trusted.index, d.joined.index) > logged.index:
		return "what is known of it, or of who signs, has changed since its standing did", nil
	case d.hasUnread:
		return unreadSigners, nil
	}
	return "", fmt.Errorf("its standing was logged as %s at %s, and by the evidence in the log it was %s then",
		logged.to, logged.at, min(derived, ledger.Promotable))
}

// Reasons why a state is not derived again.
const (
	unknownContract = "the contract was changed while this was verified (run it again)"
	unreadSigners   = "its authors or signers may have signed in other repos, whose addresses are not read (verify those)"
	blockedOverlaps = "the contract blocks overlaps with other commits, which are not read " + seeRadar
	seeRadar        = "('ledgerd radar' shows them)"
	unreadObjects   = "it depends on who wrote the commits that a review is about, whose objects are not read " +
		"('ledgerd check' reads them)"
	unreadMerges = "it is a merge, and what carries from the merged commits is not derived again (verify those)"
)

// contractBefore returns the contract that was in effect before an event, if it is known.
func (r *Replay) contractBefore(index int64) (c policy.Contract, ok bool) {
	number := 0
	for _, v := range r.versions {
		if v.index < index {
			number = v.number
		}
	}
	r.isFirst = r.isFirst || number == 1
	c, ok = r.contracts[number]
	return c, ok
}

// UsesFirst reports whether a state that was derived followed from version 1 of the contract, which
// comes with the repo and is in no event.
func (r *Replay) UsesFirst() bool { return r.isFirst }

// derive returns the state that follows from what the log has before an event, at its time. It
// ignores that the commit may be DEPLOYED. If why is unreadObjects, it is the highest that there may be.
func (d *derivation) derive(m moment) (state ledger.State, why string) {
	contract, ok := d.contractBefore(m.index)
	if !ok {
		return state, unknownContract
	}
	f, why := d.facts(&contract, m)
	if why != "" {
		return state, why
	}
	state, _ = contract.State(f, m.at)
	if f.Spans = unreadSpans(&f); f.Spans != nil && contract.ExcludesAuthor() {
		if least, _ := contract.State(f, m.at); least != state {
			return state, unreadObjects
		}
	}
	return state, ""
}

// unreadSpans says of the commits that reviews are about, by their bases, that anybody may have written them: no such
// review counts. It is nil without one.
func unreadSpans(f *policy.Facts) (spans map[string]*authors.Authorship) {
	for i := range f.Evidence {
		e := &f.Evidence[i]
		if e.Base == "" || !e.IsReview() {
			continue
		}
		if spans == nil {
			spans = make(map[string]*authors.Authorship)
		}
		spans[e.Base] = new(authors.Authorship)
	}
	return spans
}

// known returns what is known of the commit, as a contract reads it, without evidence.
func (d *derivation) known(contract *policy.Contract) policy.Facts {
	f := d.commit.known.Policy(contract.Targets, d.branch)
	f.RegisteredAt = d.commit.first
	f.AuthorPeople, f.KnownAuthors = d.signers.Authors(f.Authors, f.SigningKeys)
	f.Changes, f.Verdicts = d.commit.paths, d.verdicts
	return f
}

// facts returns what the log has of the commit before an event, as a contract reads it.
func (d *derivation) facts(contract *policy.Contract, m moment) (f policy.Facts, why string) {
	f = d.known(contract)
	before := make(said)
	for i := range d.commit.recs {
		rec := &d.commit.recs[i]
		if rec.index >= m.index {
			break
		}
		if why := d.add(&f, contract, rec, before); why != "" {
			return f, why
		}
	}
	return f, d.carry(contract, &f, m)
}

// add adds an attestation of the commit to the facts, after what was said before.
func (d *derivation) add(f *policy.Facts, contract *policy.Contract, rec *record, before said) (why string) {
	f.Attested = true
	if rec.isMerge && (contract.MayCarry(rec.evidence.Signer) || rec.evidence.Base != "" && contract.CarriesMerges()) {
		return unreadMerges
	}
	if _, ok := d.signers.Identity(rec.identity); !ok {
		return "the log does not have an identity that has signed for it, " + rec.identity
	}
	if d.isDistrusted(rec) {
		return ""
	}

	if !rec.isJudged {
		if d.judged > maxJudged {
			return "too many attestations were recorded while it was DEPLOYED"
		}
		may, why := d.mayDeploy(rec, policy.HasRollback(f.Evidence))
		if why != "" {
			return why
		}
		if may {
			if may, why = d.wasPromotable(rec.moment); why != "" {
				return why
			}
		}
		rec.evidence.WhilePromotable, rec.isJudged = may, true
	}
	f.Evidence = append(f.Evidence, d.present(rec, before))
	if rec.exception != nil {
		f.Exceptions = append(f.Exceptions, *rec.exception)
	}
	return ""
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

// wasPromotable reports whether the commit was PROMOTABLE when an attestation was recorded. A
// DEPLOYED commit may no longer meet the requirements.
func (d *derivation) wasPromotable(m moment) (was bool, why string) {
	state, _ := d.commit.stateBefore(m.index)
	if state != ledger.Deployed {
		return state == ledger.Promotable, ""
	}
	d.judged++
	derived, why := d.derive(m)
	return derived >= ledger.Promotable, why
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
	f, why := d.facts(&contract, rec.moment)
	e := rec.evidence
	d.who(&e)
	return contract.MayDeploy(f, e, rec.isAgain, rec.at), why
}

// carry adds the evidence of other commits with the same tree.
func (d *derivation) carry(contract *policy.Contract, f *policy.Facts, m moment) (why string) {
	siblings := d.siblings(d.commit)
	if len(siblings) == 0 || !contract.Carries() {
		return ""
	}
	if len(siblings) > maxSources {
		return "too many commits have the same tree"
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
		for _, e := range d.evidenceOf(c, m) {
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

// A topic is what evidence of a tree is about: only the newest carries.
type topic struct {
	predicate, slot, signer string
	stated                  bool // an outcome
}

func about(e *policy.Evidence) topic {
	return topic{e.Predicate, e.Slot, e.Signer.String(), e.Status != ledger.Recorded}
}

// source returns a commit with the same tree.
func (r *Replay) source(c *commit) policy.Source {
	s := policy.Source{Commit: c.sha, SameTree: true, Authorship: authors.Authorship{
		Authors: c.known.Authors(), SigningKeys: c.known.SigningKeys, Proven: true,
	}}
	s.AuthorPeople, s.KnownAuthors = r.signers.Authors(s.Authors, s.SigningKeys)
	return s
}

// evidenceOf returns the evidence of another commit before an event of the log.
func (d *derivation) evidenceOf(c *commit, m moment) (list []policy.Evidence) {
	before := make(said)
	for i := range c.recs {
		rec := &c.recs[i]
		if rec.index >= m.index || d.isDistrusted(rec) {
			continue
		}
		list = append(list, d.present(rec, before))
		d.carriedAt = max(d.carriedAt, rec.at)
	}
	return list
}
