package policy

import (
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy/internal/assign"
	"github.com/ledgerd/ledgerd/ledger/policy/scope"
)

// A verdict is the effect of one piece of evidence on one requirement.
type verdict uint8

const (
	unrelated    verdict = iota // another predicate
	blocks                      // a fail or error that is not accepted
	notSigner                   // by a signer who matches no pattern
	byAuthor                    // by somebody who wrote the commit, who is excluded
	notAccepted                 // another status that does not count
	unconfirmed                 // not confirmed by a passkey, which it must be
	byAnyone                    // possibly by the author, who is excluded but unknown
	notEvaluated                // the expression was not evaluated yet
	whereError                  // the expression could not be evaluated
	whereFalse                  // the expression is false
	undone                      // a deployment that was rolled back
	early                       // for DEPLOYED: recorded before the commit was PROMOTABLE
	expired                     // older than max_age
	otherSlot                   // would count, but not the person's evidence for another slot
	counts
)

// An evaluation weighs the evidence of one commit under a contract, at one time. First
// it decides, which is all that a state needs; then it can explain the decisions.
type evaluation struct {
	c   *Contract
	f   *Facts // Evidence is the latest
	now ledger.Time

	// By the position of the evidence: the individual, the pair of person and predicate, each
	// numbered from 0, and the status.
	individuals, topics []int
	statuses            []statusSet
	authors             writing
	// signers numbers the signers, by the position of the evidence. It is nil if there is little. By
	// that number, compared has the last requirement, counted from 1, with whose patterns the signer
	// was compared, and matches the result.
	signers, compared []int
	matches           []bool
	// can has, by individual, the requirements for which it counts.
	can []assign.Set
	// incomplete has, by topic, the number of the last requirement for which evidence for a
	// slot does not count, counted from 1.
	incomplete []int
	// names and reported are the texts of name and report, by the position of the evidence.
	names, reported []string
	// about is reused.
	about []int

	decisions []decision
	// radarExpires is when the first blocking overlap ends; zero for never.
	radarExpires ledger.Time
	carrying     carrying
	// statements are the rollbacks by anybody, and rollbacks the last of each environment that has an
	// effect.
	statements []Evidence
	rollbacks  []rollback
	// delivery is what a commit is judged for, or nil for the commit alone. The evidence from plain on is that of other
	// commits which covers this one: covers says for which requirement.
	delivery *Delivery
	plain    int
	covers   []assign.Set
	// search is set if any requirement has a distinct_from.
	search *assign.Search
}

// A decision is what an evaluation has decided about one requirement.
type decision struct {
	scope.Scope
	applies bool
	// verdicts are by the position of the evidence.
	verdicts []verdict
	blocked  bool
	accept   statusSet
	says     map[string]Verdict // what its expression says of attestations
	// have is the number of individuals whose evidence counts.
	have      int
	exception *Exception
	// filled is 1 if the exception fills a place of the threshold.
	filled   int
	distinct assign.Result
	// expires is when the decision changes because of the time; zero for never.
	expires ledger.Time
	met     bool
}

// A Delivery decides which commits of a delivery are covered.
type Delivery struct {
	c   *Contract
	now ledger.Time
	// all is what applies to what all commits change, and targets are those of the head.
	all     []scope.Scope
	targets []string
	head    *evaluation
	// byHead is what counts for the head, which speaks for the tree of all: who reviews must be others, by distinct_from.
	byHead []*Covering
}

// A Covering is evidence that counts for a requirement and covers commits before the one that it was recorded for.
type Covering struct {
	Evidence Evidence
	// requirement is its index.
	requirement int
	// From is the commit from which on it covers. It is not covered itself.
	From string
}

// IsOfSame reports whether two coverings are evidence of one individual for one requirement.
func (c *Covering) IsOfSame(other *Covering) bool {
	return c.requirement == other.requirement && c.Evidence.sameIndividual(&other.Evidence)
}

// evaluate decides about the requirements of a contract.
func (c *Contract) evaluate(f *Facts, now ledger.Time) *evaluation {
	return c.evaluateIn(f, now, c.scopes(f), nil, nil)
}

// evaluateIn is like evaluate, for a commit of a delivery that evidence of other commits covers. Without a delivery, it
// is about the commit alone.
func (c *Contract) evaluateIn(f *Facts, now ledger.Time, scopes []scope.Scope, d *Delivery, coverings []*Covering,
) *evaluation {
	evidence, statements := withoutStatements(Latest(f.Evidence))
	f.Evidence = evidence
	own := len(f.Evidence)
	if carriable := c.carriable(f); carriable != nil {
		f.Evidence = append(slices.Clip(f.Evidence), carriable...)
	}
	v := &evaluation{
		c: c, f: f, now: now, decisions: make([]decision, len(c.Requirements)),
		carrying: carrying{c: c, f: f, own: own, isShipped: d != nil}, statements: statements,
	}
	v.authors.carrying = &v.carrying
	if d != nil {
		v.cover(d, coverings)
	}
	v.number()
	v.carrying.topics = v.topics
	if statements != nil {
		v.rollbacks = c.lastRollbacks(f, scopes, statements, now)
	}

	verdicts := make([]verdict, len(f.Evidence)*len(c.Requirements))
	for i := range c.Requirements {
		n := i * len(f.Evidence)
		v.decisions[i].verdicts = verdicts[n : n+len(f.Evidence)]
		v.weigh(i, scopes)
	}
	for i := range c.Requirements {
		v.decide(i)
	}
	return v
}

// number numbers the individuals and topics of the evidence.
func (v *evaluation) number() {
	n := len(v.f.Evidence)
	numbers := make([]int, 3*n)
	v.individuals, v.topics, v.about = numbers[:n], numbers[n:2*n], numbers[2*n:2*n]
	v.statuses = make([]statusSet, n)
	for i := range v.f.Evidence {
		v.statuses[i] = setOf(v.f.Evidence[i].Status)
	}

	if n <= maxCompared {
		v.can = make([]assign.Set, v.numberFew())
		return
	}
	individuals, topics := groups{}, groups{byPredicate: true}
	names := make(map[identity.DN]int)
	v.signers = make([]int, n)
	for i := range v.f.Evidence {
		e := &v.f.Evidence[i]
		v.individuals[i], _ = individuals.add(e)
		v.topics[i], _ = topics.add(e)
		if _, ok := names[e.Signer]; !ok {
			names[e.Signer] = len(names)
		}
		v.signers[i] = names[e.Signer]
	}
	v.can = make([]assign.Set, len(individuals.list))
	v.compared, v.matches = make([]int, len(names)), make([]bool, len(names))
}

// numberFew is like number, for little evidence: comparing all pairs is faster. It returns
// the number of individuals.
func (v *evaluation) numberFew() (individuals int) {
	topics := 0
	for i := range v.f.Evidence {
		e, individual, topic := &v.f.Evidence[i], individuals, topics
		for j := range i {
			other := &v.f.Evidence[j]
			if other.sameIndividual(e) {
				individual = v.individuals[j]
			}
			if other.Predicate == e.Predicate && other.samePerson(e) {
				topic = v.topics[j]
			}
		}
		v.individuals[i], v.topics[i] = individual, topic
		individuals, topics = max(individuals, individual+1), max(topics, topic+1)
	}
	return individuals
}

// weigh reaches the verdicts for a requirement, and what follows from them alone.
func (v *evaluation) weigh(i int, scopes []scope.Scope) {
	r, d := &v.c.Requirements[i], &v.decisions[i]
	if scopes != nil {
		d.Scope = scopes[i]
	}
	if d.Excluded != "" {
		return
	}
	d.applies = true
	d.accept, d.says = setOf(r.Accept...), v.f.Verdicts[r.Expression()]

	about := v.evidenceAbout(i)
	hasAccepted := false
	for _, at := range about {
		verdict := v.verdict(i, at)
		d.verdicts[at] = verdict
		d.blocked = d.blocked || verdict == blocks
		e := &v.f.Evidence[at]
		hasAccepted = hasAccepted || v.statuses[at]&d.accept != 0 && !v.isUndone(e) && v.c.mayExcuse(e)
	}
	d.blocked = d.blocked || len(v.shutting(i)) > 0
	v.withoutOthers(i, about)
	v.count(i, about)
	if v.delivery != nil {
		d.blocked = d.blocked && !v.isCleared(i, about)
		if !v.delivery.asks(i) {
			v.takeOver(i)
			return
		}
	}

	if d.exception = v.c.Exceptions.inForce(v.f.Exceptions, r.Name, v.now); d.exception != nil {
		d.expires = earlier(d.expires, d.exception.Until)
		// No exception makes a commit DEPLOYED that nobody has deployed, or fills the gaps of a delivery.
		if r.State != ledger.Deployed || hasAccepted {
			d.filled = 1
		}
	}
}

// isDeployment reports whether evidence with the verdict has counted as a deployment. It does
// not cease to be one with time.
func (w verdict) isDeployment() bool { return w == counts || w == expired || w == otherSlot }

// shutting returns the rollbacks that block a requirement, after its evidence was weighed: those
// from an environment that it is about, to which no deployment has counted since.
func (v *evaluation) shutting(i int) (list []*rollback) {
	for n := range v.rollbacks {
		r := &v.rollbacks[n]
		if r.exception != nil || v.c.Requirements[i].State != ledger.Deployed || !v.c.Requirements[i].isAbout(&r.deployment) {
			continue
		}
		isAgain := false
		for at, verdict := range v.decisions[i].verdicts {
			isAgain = isAgain || verdict.isDeployment() && r.isBefore(&v.f.Evidence[at])
		}
		if !isAgain {
			list = append(list, r)
		}
	}
	return list
}

// isUndone reports whether evidence is a deployment that was rolled back.
func (v *evaluation) isUndone(e *Evidence) bool {
	return slices.ContainsFunc(v.rollbacks, func(r rollback) bool { return r.undoes(e) })
}

// evidenceAbout returns the positions of the evidence that a requirement takes into account.
// They are valid until the next call.
func (v *evaluation) evidenceAbout(i int) []int {
	r := &v.c.Requirements[i]
	v.about = v.about[:0]
	for at := range v.f.Evidence {
		if r.isAbout(&v.f.Evidence[at]) && v.isJudged(i, at) {
			v.about = append(v.about, at)
		}
	}
	if v.carrying.own == len(v.f.Evidence) {
		return v.about
	}
	if v.delivery == nil {
		return v.carrying.take(r, v.about)
	}
	others := slices.IndexFunc(v.about, v.isOfOther)
	if others < 0 {
		return v.carrying.take(r, v.about)
	}
	return append(v.carrying.take(r, v.about[:others]), v.about[others:]...) // nothing replaces what counts elsewhere
}

// verdict returns the verdict of a requirement on the evidence at a position, which it is
// about. A failure blocks before any filter, and never expires.
func (v *evaluation) verdict(i, at int) verdict {
	r, d, status := &v.c.Requirements[i], &v.decisions[i], v.statuses[at]
	if v.isOfOther(at) {
		return counts // as it does for its own commit
	}
	switch {
	case status&failures&^d.accept != 0, v.f.Evidence[at].Distrusted:
		return blocks
	case !v.isSigner(i, at):
		return notSigner
	case r.ExcludeAuthor != AuthorCounts && v.authors.wrote(r, at):
		return byAuthor
	case status&d.accept == 0:
		return notAccepted
	case r.Passkey && !v.f.Evidence[at].Passkey:
		return unconfirmed
	case r.ExcludeAuthor != AuthorCounts && !v.authors.knows(r, at):
		return byAnyone
	}

	e := &v.f.Evidence[at]
	if r.hasExpression() {
		switch where, ok := d.says[e.Attestation]; {
		case !ok:
			return notEvaluated
		case where.Error != "":
			return whereError
		case !where.True:
			return whereFalse
		}
	}

	switch end := r.end(v.f, e); {
	case r.State == ledger.Deployed && v.isUndone(e):
		return undone
	case r.State == ledger.Deployed && !e.WhilePromotable:
		return early
	case end != 0 && end <= v.now:
		return expired
	}
	return counts
}

// isSigner reports whether the signer of the evidence at a position may sign for a requirement, the
// one that is weighed. It compares each signer with the patterns once.
func (v *evaluation) isSigner(i, at int) bool {
	r, signer := &v.c.Requirements[i], v.f.Evidence[at].Signer
	if v.signers == nil || len(r.Signers) == 0 {
		return r.isSigner(signer)
	}
	n := v.signers[at]
	if v.compared[n] != i+1 {
		v.compared[n], v.matches[n] = i+1, r.isSigner(signer)
	}
	return v.matches[n]
}

// withoutOthers changes the verdict on evidence that would count if the same person's
// evidence for another slot of the predicate does not: a clean scan of one image does not
// hide that of another. What covers the commit was compared with the rest of its own commit.
func (v *evaluation) withoutOthers(i int, about []int) {
	d, found := &v.decisions[i], false
	for _, at := range about {
		if verdict := d.verdicts[at]; verdict != counts && verdict != notSigner && (verdict == blocks || !v.isSilent(i, at)) {
			if v.incomplete == nil {
				v.incomplete = make([]int, len(v.topics))
			}
			v.incomplete[v.topics[at]] = i + 1
			found = true
		}
	}
	if !found {
		return
	}
	for _, at := range about {
		if d.verdicts[at] == counts && v.incomplete[v.topics[at]] == i+1 && !v.isOfOther(at) {
			d.verdicts[at] = otherSlot
		}
	}
}

// isSilent reports whether the evidence at a position carries, but says nothing about other
// slots of its predicate: it would count if it was newer, or its person wrote a commit, or may
// have. What does not count for another reason never becomes silent by waiting.
func (v *evaluation) isSilent(i, at int) bool {
	r, e := &v.c.Requirements[i], &v.f.Evidence[at]
	if e.Source == 0 {
		return false
	}
	if r.ExcludeAuthor != AuthorCounts && (v.authors.wrote(r, at) || !v.authors.knows(r, at)) {
		return true
	}
	return v.decisions[i].verdicts[at] == expired
}

// count counts the individuals whose evidence counts for a requirement, and finds out when the
// first evidence that counts, or would if that for other slots did, expires.
func (v *evaluation) count(i int, about []int) {
	r, d := &v.c.Requirements[i], &v.decisions[i]
	for _, at := range about {
		verdict := d.verdicts[at]
		if can := &v.can[v.individuals[at]]; verdict == counts && !can.Contains(i) {
			can.Add(i)
			d.have++
		}
		if verdict == counts || verdict == otherSlot {
			d.expires = earlier(d.expires, r.end(v.f, &v.f.Evidence[at]))
		}
	}
}

// earlier returns the earlier of two times, of which zero means never.
func earlier(a, b ledger.Time) ledger.Time {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// decide decides whether a requirement is met, after the evidence was weighed for all.
func (v *evaluation) decide(i int) {
	r, d := &v.c.Requirements[i], &v.decisions[i]
	if !d.applies || d.have+d.filled < r.Threshold || d.blocked && d.exception == nil || v.isIncomplete(r) {
		return
	}
	d.distinct = v.assign(i, v.demand(i))
	d.met = d.distinct == assign.Found
}

// isIncomplete reports whether evidence may be missing that would block a requirement.
func (v *evaluation) isIncomplete(r *Requirement) bool { return r.Carry != 0 && v.f.Incomplete != "" }

// demand returns how many people a requirement needs.
func (v *evaluation) demand(i int) int { return v.c.Requirements[i].Threshold - v.decisions[i].filled }

// assign reports whether so many people can be assigned to a requirement, apart from those
// whom the states of its distinct_from need, and these apart from those whom the states of
// theirs need. Additional evidence never makes it worse.
func (v *evaluation) assign(i, demand int) assign.Result {
	if len(v.c.Requirements[i].DistinctFrom) == 0 {
		return assign.Found
	}
	if v.search == nil {
		v.search = assign.New(len(v.c.Requirements), v.mustDiffer)
	}

	demands := make([]int, len(v.decisions))
	involved := v.involved(i)
	for j := range involved.All(len(v.decisions)) {
		demands[j] = v.demand(j)
	}
	demands[i] = demand
	return v.search.People(demands, v.can, &involved)
}

// mustDiffer reports whether requirement i needs other people than j, and both apply.
func (v *evaluation) mustDiffer(i, j int) bool {
	return v.decisions[i].applies && v.decisions[j].applies &&
		slices.Contains(v.c.Requirements[i].DistinctFrom, v.c.Requirements[j].State)
}

// involved returns a requirement with those of the states in its distinct_from, and those
// of the states in theirs.
func (v *evaluation) involved(i int) (set assign.Set) {
	var states [ledger.Deployed + 1]bool
	set.Add(i)
	// The states are lower than the requirement's, so going down finds all.
	for _, s := range v.c.Requirements[i].DistinctFrom {
		states[s] = true
	}
	for state := v.c.Requirements[i].State - 1; state >= ledger.Attested; state-- {
		for j := range v.c.Requirements {
			if r := &v.c.Requirements[j]; r.State != state || !states[state] || !v.decisions[j].applies {
				continue
			}
			set.Add(j)
			for _, s := range v.c.Requirements[j].DistinctFrom {
				states[s] = true
			}
		}
	}
	return set
}

// asks reports whether each commit must meet a requirement.
func (d *Delivery) asks(i int) bool {
	r := &d.c.Requirements[i]
	return r.Covers == CoversChange && r.State < ledger.Deployed
}

// scopesOf returns which requirements apply to a commit of the delivery: those that each commit must meet by what it
// changes, others by what all change.
func (d *Delivery) scopesOf(ch scope.Changes) []scope.Scope {
	if d.all == nil {
		return nil
	}
	list := d.c.scopesOf(d.targets, ch)
	for i := range list {
		if !d.asks(i) {
			list[i] = d.all[i]
		}
	}
	return list
}

// cover adds the evidence that covers a commit of a delivery to its own.
func (v *evaluation) cover(d *Delivery, coverings []*Covering) {
	v.delivery, v.plain = d, len(v.f.Evidence)
	v.f.Evidence = slices.Clip(v.f.Evidence)
	for _, list := range [][]*Covering{d.byHead, coverings} {
		for _, c := range list {
			v.f.Evidence = append(v.f.Evidence, c.Evidence)
			var counts assign.Set
			counts.Add(c.requirement)
			v.covers = append(v.covers, counts)
		}
	}
}

// isOfOther reports whether the evidence at a position is that of another commit, which covers this one.
func (v *evaluation) isOfOther(at int) bool { return v.delivery != nil && at >= v.plain }

// isJudged reports whether the evidence at a position plays a part for a requirement that it is about. For those about
// the tree, only that of the head does.
func (v *evaluation) isJudged(i, at int) bool {
	if v.isOfOther(at) {
		return v.covers[at-v.plain].Contains(i)
	}
	return v.delivery == nil || v.delivery.asks(i)
}

// isCleared reports whether a review that covers the commit was recorded after all that blocks a requirement.
func (v *evaluation) isCleared(i int, about []int) bool {
	last, cleared := "", ""
	for _, at := range about {
		switch e := &v.f.Evidence[at]; {
		case v.isOfOther(at):
			cleared = max(cleared, e.Attestation)
		case v.decisions[i].verdicts[at] == blocks:
			last = max(last, e.Attestation)
		}
	}
	return cleared > last
}

// takeOver takes what an exception does for the head, and whether it lacks people, for a requirement about the tree.
// Its own state says what the head lacks. Exceptions of the commit itself play no part.
func (v *evaluation) takeOver(i int) {
	d, head := &v.decisions[i], &v.delivery.head.decisions[i]
	d.filled, d.exception = head.filled, head.exception
	if !head.met {
		d.filled = v.c.Requirements[i].Threshold
	}
}
