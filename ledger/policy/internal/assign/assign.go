// Package assign finds out whether people can be assigned to requirements so that nobody is
// assigned to two that must be distinct.
package assign

import (
	"maps"
	"slices"
)

// A Result is the result of a search for distinct people.
type Result uint8

// The results.
const (
	Missing Result = iota // people are missing
	Found
	GaveUp // there are too many ways to assign people to try all
)

// maxSteps limits the steps of assigning people, to derive one state. That many take a few
// milliseconds. Assigning some people to some requirements takes some hundred.
const maxSteps = 200_000

// A Search assigns people to requirements so that nobody is assigned to two that must be
// distinct. A person may be assigned to several others.
type Search struct {
	// apart holds, by requirement, those from which it must be distinct.
	apart []Set
	// steps is how many more steps may be taken.
	steps int
}

// A problem is what is left to assign.
type problem struct {
	demands []int // of people, by requirement
	classes []class
}

// A class is a number of people who count for the same requirements.
type class struct {
	can    Set
	people int
}

func (p problem) clone() problem {
	return problem{slices.Clone(p.demands), slices.Clone(p.classes)}
}

// New returns a search among n requirements. mustDiffer reports whether requirement i must be
// distinct from j.
func New(n int, mustDiffer func(i, j int) bool) *Search {
	s := &Search{apart: make([]Set, n), steps: maxSteps}
	for i := range n {
		for j := range n {
			if mustDiffer(i, j) {
				s.apart[i].Add(j)
				s.apart[j].Add(i)
			}
		}
	}
	return s
}

// People reports whether people can be assigned so that all demands are met, which are the
// numbers of people by requirement. can has the requirements for which each person counts; of them,
// only those in the set of are looked at.
func (s *Search) People(demands []int, can []Set, of *Set) Result {
	return s.run(problem{demands, classesOf(can, of)})
}

// run reports whether people can be assigned so that all demands are met.
func (s *Search) run(p problem) Result {
	if !s.assignFree(&p) {
		return GaveUp
	}
	switch scarce, spare := p.scarcest(); {
	case scarce < 0:
		return Found
	case spare < 0:
		return Missing
	default:
		return s.choose(p, scarce)
	}
}

// choose tries the ways in which somebody can be assigned to a requirement.
func (s *Search) choose(p problem, scarce int) Result {
	// Either somebody of this class is assigned to the scarcest requirement, or nobody is.
	i := slices.IndexFunc(p.classes, func(c class) bool { return c.can.Contains(scarce) })
	options := s.options(p.classes[i].can.minus(&s.apart[scarce]), nil)
	for _, set := range options {
		with := p.clone()
		with.classes[i].people--
		with.assign(&set, 1)
		if result := s.run(with); result != Missing {
			return result
		}
	}
	without := p.clone()
	without.classes[i].can.Remove(scarce)
	return s.run(without)
}

// assignFree assigns all people who need not choose, and drops them. It returns false if
// that takes too many steps.
func (s *Search) assignFree(p *problem) bool {
	for changed := true; changed; {
		changed = false
		if s.steps -= len(p.classes) * (2 + len(p.demands)/16); s.steps < 0 {
			return false
		}
		for i := range p.classes {
			c := &p.classes[i]
			for at := range c.can.All(len(p.demands)) {
				if p.demands[at] <= 0 {
					c.can.Remove(at)
				}
			}
			if c.people > 0 && !c.can.isEmpty() && s.conflict(&c.can) < 0 {
				p.assign(&c.can, c.people)
				c.people, changed = 0, true
			}
		}
	}
	p.classes = slices.DeleteFunc(p.classes, func(c class) bool { return c.people == 0 || c.can.isEmpty() })
	return true
}

// conflict returns a requirement of the set that must be distinct from another one of it,
// or -1.
func (s *Search) conflict(set *Set) int {
	for at := range set.All(len(s.apart)) {
		if set.meets(&s.apart[at]) {
			return at
		}
	}
	return -1
}

// options returns subsets that one person can be assigned to, among them all that cannot
// be extended. A requirement is apart from all of a state or from none, so they are at most the product
// of the numbers of requirements of two states.
func (s *Search) options(set Set, list []Set) []Set {
	at := s.conflict(&set)
	if at < 0 {
		return append(list, set)
	}
	list = s.options(set.minus(&s.apart[at]), list)
	set.Remove(at)
	return s.options(set, list)
}

// assign assigns a number of people to the requirements of a set.
func (p *problem) assign(set *Set, people int) {
	for at := range set.All(len(p.demands)) {
		p.demands[at] -= people
	}
}

// scarcest returns the requirement whose demand is not met and that has the fewest people
// to spare, and how many, or -1 if all demands are met.
func (p *problem) scarcest() (scarcest, spare int) {
	spares := make([]int, len(p.demands))
	for i := range p.classes {
		c := &p.classes[i]
		for at := range c.can.All(len(p.demands)) {
			spares[at] += c.people
		}
	}

	scarcest = -1
	for at, demand := range p.demands {
		if demand <= 0 {
			continue
		}
		if spares[at] -= demand; scarcest < 0 || spares[at] < spare {
			scarcest, spare = at, spares[at]
		}
	}
	return scarcest, spare
}

// classesOf returns the classes of people who count for the same requirements of a set,
// in a fixed order. can has the requirements for which each person counts.
func classesOf(can []Set, of *Set) []class {
	count := make(map[Set]int)
	for i := range can {
		if set := can[i].and(of); !set.isEmpty() {
			count[set]++
		}
	}
	sets := slices.SortedFunc(maps.Keys(count), func(a, b Set) int { return slices.Compare(a[:], b[:]) })
	classes := make([]class, len(sets))
	for i, set := range sets {
		classes[i] = class{set, count[set]}
	}
	return classes
}
