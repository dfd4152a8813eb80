package policy

import (
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/glob"
)

// A verdict is the effect of one piece of evidence on one requirement.
type verdict uint8

const (
	unrelated    verdict = iota // another predicate
	blocks                      // a fail or error that is not accepted
	notSigner                   // by a signer who matches no pattern
	byAuthor                    // by somebody who wrote the commit, who is excluded
	notAccepted                 // another status that does not count
	byAnyone                    // possibly by the author, who is excluded but unknown
	notEvaluated                // the expression was not evaluated yet
	whereError                  // the expression could not be evaluated
	whereFalse                  // the expression is false
	early                       // for DEPLOYED: recorded before the commit was PROMOTABLE
	expired                     // older than max_age
	otherSlot                   // would count, but not the person's evidence for another slot
	counts
)

// An evaluation weighs the evidence of one commit under a contract, at one time. First
// it decides, which is all that a state needs; then it can explain the decisions.
type evaluation struct {
	c     *Contract
	f     *Facts // Evidence is the latest
	now   ledger.Time
	index *signerIndex
	signs map[identity.DN]requirementSet // by signer, from index
	steps int                            // the limit for matching one glob of paths

	// By the position of the evidence: the person, the pair of person and predicate, each
	// numbered from 0, and whether the person wrote the commit.
	people, topics []int
	isAuthor       []bool
	// signers is the number of distinct people.
	signers int
	// counted holds the people of all decisions.
	counted []int

	decisions []decision
	// radarExpires is when the first blocking overlap ends; zero for never.
	radarExpires ledger.Time
	// search and can, the requirements for which each person counts, are set if any
	// requirement has a distinct_from.
	search *search
	can    []requirementSet
}

// A decision is what an evaluation has decided about one requirement.
type decision struct {
	applies          bool
	excluded, unsure string // see Requirement.scope
	// verdicts are by the position of the evidence.
	verdicts []verdict
	blocked  bool
	tooMany  bool // there are too many signers and patterns to compare
	// people are those whose evidence counts, in the order of their numbers.
	people    []int
	exception *Exception
	// filled is 1 if the exception fills a place of the threshold.
	filled   int
	distinct assignment
	// expires is when the decision changes because of the time; zero for never.
	expires ledger.Time
	met     bool
}

// evaluate decides about the requirements of a contract.
func (c *Contract) evaluate(f *Facts, now ledger.Time) *evaluation {
	f.Evidence = withoutExceptions(Latest(f.Evidence))
	v := &evaluation{
		c: c, f: f, now: now, index: c.signerIndex(), steps: c.matchingSteps(),
		decisions: make([]decision, len(c.Requirements)),
	}
	if v.index != nil {
		v.signs = make(map[identity.DN]requirementSet)
	}
	v.number()
	verdicts := make([]verdict, len(f.Evidence)*len(c.Requirements))
	for i := range c.Requirements {
		n := i * len(f.Evidence)
		v.decisions[i].verdicts = verdicts[n : n+len(f.Evidence)]
		v.weigh(i)
	}
	for i := range c.Requirements {
		v.decide(i)
	}
	return v
}

// withoutExceptions returns evidence without exceptions, which no requirement is about.
func withoutExceptions(list []Evidence) []Evidence {
	isException := func(e Evidence) bool { return ledger.ReservedPrefix(e.Predicate) == exceptionPrefix }
	if !slices.ContainsFunc(list, isException) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), isException)
}

const exceptionPrefix = "exception:"

// signerIndex returns the index of the contract's patterns, or nil if they are few.
func (c *Contract) signerIndex() *signerIndex {
	if c.index != nil {
		return c.index
	}
	return newSignerIndex(c.Requirements)
}

// matchingSteps returns the limit of steps for matching one glob of the contract against
// the paths of one commit.
func (c Contract) matchingSteps() int {
	globs := 0
	for i := range c.Requirements {
		globs += len(c.Requirements[i].Paths)
	}
	return glob.MaxMatching / max(globs, 1)
}

// number numbers the people of the evidence.
func (v *evaluation) number() {
	n := len(v.f.Evidence)
	numbers := make([]int, 3*n)
	v.people, v.topics, v.counted = numbers[:n], numbers[n:2*n], numbers[2*n:2*n]
	if n <= maxCompared {
		v.numberFew()
		return
	}
	people, topics := groups{}, groups{byPredicate: true}
	for i := range v.f.Evidence {
		v.people[i], _ = people.add(&v.f.Evidence[i])
		v.topics[i], _ = topics.add(&v.f.Evidence[i])
	}
	v.signers = len(people.list)
}

// numberFew is like number, for little evidence: comparing all pairs is faster.
func (v *evaluation) numberFew() {
	topics := 0
	for i := range v.f.Evidence {
		e, person, topic := &v.f.Evidence[i], v.signers, topics
		for j := range i {
			if other := &v.f.Evidence[j]; other.samePerson(e) {
				person = v.people[j]
				if other.Predicate == e.Predicate {
					topic = v.topics[j]
				}
			}
		}
		v.people[i], v.topics[i] = person, topic
		v.signers, topics = max(v.signers, person+1), max(topics, topic+1)
	}
}

// weigh reaches the verdicts for a requirement, and what follows from them alone.
func (v *evaluation) weigh(i int) {
	r, d := &v.c.Requirements[i], &v.decisions[i]
	if d.excluded, d.unsure = r.scope(v.f, v.steps); d.excluded != "" {
		return
	}
	d.applies = true
	d.tooMany = v.index.tooMany(i, v.signers)

	hasAccepted := false
	for at := range v.f.Evidence {
		d.verdicts[at] = v.verdict(i, at)
		d.blocked = d.blocked || d.verdicts[at] == blocks
		hasAccepted = hasAccepted || d.verdicts[at] != unrelated && slices.Contains(r.Accept, v.f.Evidence[at].Status)
	}
	v.withoutOthers(d)
	d.expires = v.expires(r, d)
	d.people = v.peopleOf(d)

	if d.exception = v.c.Exceptions.InForce(v.f.Exceptions, r.Name, v.now); d.exception != nil {
		d.expires = earlier(d.expires, d.exception.Until)
		// No exception makes a commit DEPLOYED that nobody has deployed.
		if r.State != ledger.Deployed || hasAccepted {
			d.filled = 1
		}
	}
}

// verdict returns the verdict of a requirement on the evidence at a position. A failure
// blocks before any filter, and never expires.
func (v *evaluation) verdict(i, at int) verdict {
	r, e := &v.c.Requirements[i], &v.f.Evidence[at]
	switch {
	case !r.isAbout(e):
		return unrelated
	case r.blockedBy(e):
		return blocks
	case !v.isSigner(i, at):
		return notSigner
	case r.ExcludeAuthor && v.wroteCommit(at):
		return byAuthor
	case !slices.Contains(r.Accept, e.Status):
		return notAccepted
	case r.ExcludeAuthor && !v.f.hasAuthor():
		return byAnyone
	}

	if r.Where != "" {
		switch where, ok := v.f.Verdicts[VerdictKey{e.Attestation, r.Where}]; {
		case !ok:
			return notEvaluated
		case where.Error != "":
			return whereError
		case !where.True:
			return whereFalse
		}
	}

	end := r.end(e)
	switch {
	case r.State == ledger.Deployed && !e.WhilePromotable:
		return early
	case end != 0 && end <= v.now:
		return expired
	}
	return counts
}

// isSigner reports whether the signer of the evidence at a position is one of the
// requirement's.
func (v *evaluation) isSigner(i, at int) bool {
	r, d := &v.c.Requirements[i], &v.decisions[i]
	switch {
	case len(r.Signers) == 0:
		return true
	case d.tooMany:
		return false
	case v.index == nil:
		return r.isSigner(v.f.Evidence[at].Signer)
	}
	signer := v.f.Evidence[at].Signer
	set, ok := v.signs[signer]
	if !ok {
		set = v.index.requirements(signer)
		v.signs[signer] = set
	}
	return set.contains(i)
}

// wroteCommit reports whether the evidence at a position is by somebody who wrote the
// commit.
func (v *evaluation) wroteCommit(at int) bool {
	if v.isAuthor == nil {
		v.isAuthor = v.f.byAuthors()
	}
	return v.isAuthor[at]
}

// withoutOthers changes the verdict on evidence that would count if the same person's
// evidence for another slot of the predicate does not: a clean scan of one image does not
// hide that of another.
func (v *evaluation) withoutOthers(d *decision) {
	var incomplete []bool // by topic
	for at, verdict := range d.verdicts {
		if verdict != counts && verdict != unrelated && verdict != notSigner {
			if incomplete == nil {
				incomplete = make([]bool, len(v.topics))
			}
			incomplete[v.topics[at]] = true
		}
	}
	if incomplete == nil {
		return
	}
	for at, verdict := range d.verdicts {
		if verdict == counts && incomplete[v.topics[at]] {
			d.verdicts[at] = otherSlot
		}
	}
}

// expires returns when the first evidence that counts, or would if that for other slots
// did, expires, or zero for never.
func (v *evaluation) expires(r *Requirement, d *decision) (expires ledger.Time) {
	if r.MaxAge == 0 {
		return 0
	}
	for at, verdict := range d.verdicts {
		if verdict == counts || verdict == otherSlot {
			expires = earlier(expires, r.end(&v.f.Evidence[at]))
		}
	}
	return expires
}

// earlier returns the earlier of two times, of which zero means never.
func earlier(a, b ledger.Time) ledger.Time {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// peopleOf returns the people whose evidence counts, in the order of their numbers.
func (v *evaluation) peopleOf(d *decision) []int {
	start := len(v.counted)
	for at, verdict := range d.verdicts {
		if verdict == counts {
			v.counted = append(v.counted, v.people[at])
		}
	}
	people := v.counted[start:]
	slices.Sort(people)
	people = slices.Compact(people)
	v.counted = v.counted[:start+len(people)]
	return people[:len(people):len(people)]
}

// decide decides whether a requirement is met, after the evidence was weighed for all.
func (v *evaluation) decide(i int) {
	r, d := &v.c.Requirements[i], &v.decisions[i]
	if !d.applies || len(d.people)+d.filled < r.Threshold || d.blocked && d.exception == nil {
		return
	}
	d.distinct = v.assign(i, v.demand(i))
	d.met = d.distinct == assigned
}

// demand returns how many people a requirement needs.
func (v *evaluation) demand(i int) int { return v.c.Requirements[i].Threshold - v.decisions[i].filled }

// assign reports whether so many people can be assigned to a requirement, apart from those
// whom the states of its distinct_from need, and these apart from those whom the states of
// theirs need. Additional evidence never makes it worse.
func (v *evaluation) assign(i, demand int) assignment {
	if len(v.c.Requirements[i].DistinctFrom) == 0 {
		return assigned
	}
	if v.search == nil {
		v.search = newSearch(v.c.Requirements, func(i int) bool { return v.decisions[i].applies })
		v.can = make([]requirementSet, v.signers)
		for j := range v.decisions {
			for _, person := range v.decisions[j].people {
				v.can[person].add(j)
			}
		}
	}

	p := problem{demands: make([]int, len(v.decisions))}
	involved := v.involved(i)
	for j := range involved.all(len(v.decisions)) {
		p.demands[j] = v.demand(j)
	}
	p.demands[i] = demand
	p.classes = classesOf(v.can, &involved)
	return v.search.run(p)
}

// involved returns a requirement with those of the states in its distinct_from, and those
// of the states in theirs.
func (v *evaluation) involved(i int) (set requirementSet) {
	var states [ledger.Deployed + 1]bool
	set.add(i)
	// The states are lower than the requirement's, so going down finds all.
	for _, s := range v.c.Requirements[i].DistinctFrom {
		states[s] = true
	}
	for state := v.c.Requirements[i].State - 1; state >= ledger.Attested; state-- {
		for j := range v.c.Requirements {
			if r := &v.c.Requirements[j]; r.State != state || !states[state] || !v.decisions[j].applies {
				continue
			}
			set.add(j)
			for _, s := range v.c.Requirements[j].DistinctFrom {
				states[s] = true
			}
		}
	}
	return set
}
