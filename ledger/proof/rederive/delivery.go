package rederive

import (
	"maps"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/delivery"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/lineage"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/running"
)

// act follows what runs in the environments for which a contract asks what deployments ship, and judges these
// deployments. Each depends on those before it.
func (d *derivation) act() {
	for ; d.acted < len(d.acts); d.acted++ {
		a := d.acts[d.acted]
		of := &derivation{Replay: d.Replay, commit: a.commit, branch: d.branch}
		if rec := &a.commit.recs[a.n]; rec.exception != nil {
			of.excuse(rec)
		} else {
			name := environmentOf(&rec.evidence)
			of.change(d.environments[name], name, rec)
		}
	}
}

// change does what an attestation of the commit has done to an environment.
func (d *derivation) change(v *environment, name string, rec *record) {
	s := running.Step{ID: rec.index, Commit: d.commit.number, Public: rec.evidence.Attestation}
	if rec.to != "" {
		s.To = d.Replay.commit(rec.to).number
	}
	why := d.step(&s, v, name, rec)
	v.learnt = max(v.learnt, d.learntOf())
	if why == "" {
		v.apply(s)
		return
	}

	why = "it depends on whether " + ledger.Short(d.commit.sha) + " was deployed to " + name +
		", which is not derived again: " + why
	for _, commit := range []int64{s.Commit, s.To} {
		if commit != 0 {
			v.doubts[commit] = doubt{why, rec.evidence.FinishedAt}
		}
	}
}

// learntOf returns the last event of what is known of the commit and of those on which its deployments depend.
func (d *derivation) learntOf() int64 { return max(d.commit.logged.index, d.seen.learnt) }

// step sets what an attestation has done to an environment.
func (d *derivation) step(s *running.Step, v *environment, name string, rec *record) (why string) {
	contract, ok := d.contractBefore(rec.index)
	switch {
	case !ok:
		return unknownContract
	case d.commit.known == nil:
		return "it is not known what it is"
	case d.isDistrusted(rec):
		return "its signer is distrusted now"
	}
	past := d.at(rec.moment)
	before, why := d.facts(past, &contract)
	if rec.doubt = why; why != "" {
		return why
	}
	if rec.ships {
		rec.doubt = d.judge(v, &contract, before, past, rec)
		if rec.learnt = d.learntOf(); rec.doubt != "" {
			return rec.doubt
		}
	}

	e := rec.evidence
	d.who(&e)
	signer := identity.Signer{DN: e.Signer, May: identity.Predicates{"*"}} // what it may, is checked when it is added
	if err := contract.CheckBaseline(before, e, &signer); err != nil {
		return err.Error()
	}
	s.SaidAt, s.FinishedAt = e.FinishedAt, policy.Finished(before.Evidence, &e)
	isBreach, why := d.isBreach(&contract, rec)
	if why != "" {
		return why
	}
	s.Judge(&contract, before, e, name, isBreach)
	state, _ := d.commit.stateBefore(rec.index)
	switch {
	case isBreach:
		v.breaks(s, &e)
	case contract.IsDeployment(e), contract.RollsBack(before, e) && (state == ledger.Deployed || v.isBroken(s.Commit)):
		v.breaches = nil
	}
	return ""
}

// isBreach reports whether an attestation of the commit is a deployment that breaks a contract.
func (d *derivation) isBreach(contract *policy.Contract, rec *record) (is bool, why string) {
	if !contract.IsDeployment(rec.evidence) {
		return false, ""
	}
	past := d.at(moment{rec.index + 1, rec.at})
	after, why := d.facts(past, contract)
	if why == "" && past.lacks {
		why = past.whyLacking(unreadShipped)
	}
	if why != "" {
		return false, why
	}
	_, is = contract.Violation(after, rec.evidence, rec.at)
	return is, ""
}

// excuse has the deployments of the commit count for which an exception stands in.
func (d *derivation) excuse(rec *record) {
	for _, v := range d.environments {
		if !v.isBroken(d.commit.number) {
			continue
		}
		if why := d.excuseIn(v, rec); why != "" {
			v.doubts[d.commit.number] = doubt{why: why}
		}
	}
}

func (d *derivation) excuseIn(v *environment, rec *record) (why string) {
	contract, ok := d.contractBefore(rec.index)
	switch {
	case !ok:
		return unknownContract
	case d.isDistrusted(rec):
		return "who made an exception for " + ledger.Short(d.commit.sha) + " is distrusted now"
	}
	for _, doubt := range v.doubts { // of a deployment that may have closed the violation before
		return doubt.why
	}
	past := d.at(moment{rec.index + 1, rec.at})
	after, why := d.facts(past, &contract)
	if why == "" && past.lacks {
		why = past.whyLacking(unreadShipped)
	}
	if why == "" {
		excused := contract.Excused(after, rec.at, rec.evidence.Attestation)
		v.excuse(d.commit.number, func(e policy.Evidence) bool { return contract.Excuses(excused, after, e) })
	}
	return why
}

// judge sets whether a deployment of the commit was recorded while it was PROMOTABLE, and shipped only what is covered.
// The facts are what was known of the commit.
func (d *derivation) judge(v *environment, contract *policy.Contract, f policy.Facts, past *view, rec *record) string {
	may, why := d.mayCount(rec, policy.HasRollback(f.Evidence))
	if why == "" && may {
		may, why = d.isCovered(v, contract, f, past)
	}
	rec.evidence.WhilePromotable, rec.isJudged = may && why == "", true
	return why
}

// isCovered reports whether all is covered that a deployment of the commit to an environment ships in a view.
func (d *derivation) isCovered(v *environment, contract *policy.Contract, f policy.Facts, past *view) (is bool,
	why string,
) {
	if why = d.doubt(v, contract, past); why != "" {
		return false, why
	}
	base, ran := "", make(map[string]bool)
	for i, number := range v.Ran() {
		sha := d.numbered[number-1].sha
		if ran[sha] = true; i == 0 {
			base = sha
		}
	}
	list, complete, _ := lineage.Delivery(past.node, d.commit.sha, ran) // a view returns no error
	follows, _, _ := past.IsAncestor(base, d.commit.sha)
	since := ""
	if contract.FollowsRecords() {
		since, _ = lineage.Since(past.node, list, ran)
	}

	commits := make([]delivery.Commit, len(list))
	for i, shipped := range list {
		commits[i].Shipped = shipped
		if i == 0 {
			commits[i].Facts = &f
		} else if commits[i].Facts, why = d.factsOf(shipped.SHA, contract, past); why != "" {
			return false, why
		}
	}
	past.learnt = max(past.learnt, v.learnt)
	d.seen.include(past.basis)
	switch {
	case past.lacks:
		return false, past.whyLacking(unreadShipped)
	case !complete:
		return false, ""
	}
	_, gaps := delivery.Judge(contract, commits, delivery.Base{Since: since, Follows: follows}, past.moment.at)
	return len(gaps) == 0, ""
}

// doubt says why it is not known what has run in an environment, of that on which a delivery of the commit depends.
func (d *derivation) doubt(v *environment, contract *policy.Contract, past *view) (why string) {
	for _, number := range slices.Sorted(maps.Keys(v.doubts)) {
		is, sure, _ := past.IsAncestor(d.numbered[number-1].sha, d.commit.sha)
		if is || !sure || contract.NeedsChanges() { // what runs decides which requirements apply
			return v.doubts[number].why
		}
	}
	return ""
}

// factsOf returns what the log has of a commit that is shipped, in a view. It is nil if the ledger knew at most its
// object.
func (d *derivation) factsOf(sha string, contract *policy.Contract, v *view) (*policy.Facts, string) {
	c := d.commits[sha]
	switch {
	case c == nil || c.first.at == 0 || !v.hasOwn(c.first):
		return nil, ""
	case c.known == nil:
		return nil, "the log does not have what is known of " + sha + ", which it shipped"
	}
	v.learnt = max(v.learnt, c.logged.index)
	of := &derivation{Replay: d.Replay, commit: c, branch: d.branch}
	f, why := of.facts(v, contract)
	return &f, why
}
