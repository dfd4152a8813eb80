package policy

import (
	"maps"
	"slices"
)

// An assignment is the result of a search for distinct people.
type assignment uint8

const (
	notAssigned assignment = iota
	assigned
	gaveUp // there are too many ways to assign people to try all
)

// maxSteps limits the steps of assigning people, to derive one state. That many take a few
// milliseconds. Assigning some people to some requirements takes some hundred.
const maxSteps = 200_000

// peopleSteps is how many steps it takes to find the class of one person.
const peopleSteps = 10

// A search assigns people to requirements so that nobody is assigned to two that must be
// distinct. A person may be assigned to several others.
type search struct {
	// apart holds, by requirement, those from which it must be distinct.
	apart []requirementSet
	// steps is how many more steps may be taken.
	steps int
}

// spend takes steps, and reports whether there are as many.
func (s *search) spend(steps int) bool {
	s.steps -= min(steps, s.steps+1)
	return s.steps >= 0
}

// A problem is what is left to assign.
type problem struct {
	demands []int // of people, by requirement
	classes []class
}

// A class is a number of people who count for the same requirements.
type class struct {
	can    requirementSet
	people int
}

func (p problem) clone() problem {
	return problem{slices.Clone(p.demands), slices.Clone(p.classes)}
}

// newSearch returns the search for a contract, limited to requirements that apply.
func newSearch(requirements []Requirement, applies func(i int) bool) *search {
	s := &search{apart: make([]requirementSet, len(requirements)), steps: maxSteps}
	for i := range requirements {
		if !applies(i) || len(requirements[i].DistinctFrom) == 0 {
			continue
		}
		for j := range requirements {
			if applies(j) && slices.Contains(requirements[i].DistinctFrom, requirements[j].State) {
				s.apart[i].add(j)
				s.apart[j].add(i)
			}
		}
	}
	return s
}

// run reports whether people can be assigned so that all demands are met.
func (s *search) run(p problem) assignment {
	if !s.assignFree(&p) {
		return gaveUp
	}
	switch scarce, spare := p.scarcest(); {
	case scarce < 0:
		return assigned
	case spare < 0:
		return notAssigned
	default:
		return s.choose(p, scarce)
	}
}

// choose tries the ways in which somebody can be assigned to a requirement.
func (s *search) choose(p problem, scarce int) assignment {
	// Either somebody of this class is assigned to the scarcest requirement, or nobody is.
	i := slices.IndexFunc(p.classes, func(c class) bool { return c.can.contains(scarce) })
	options := s.options(p.classes[i].can.minus(&s.apart[scarce]), nil)
	for _, set := range options {
		with := p.clone()
		with.classes[i].people--
		with.assign(&set, 1)
		if result := s.run(with); result != notAssigned {
			return result
		}
	}
	without := p.clone()
	without.classes[i].can.remove(scarce)
	return s.run(without)
}

// assignFree assigns all people who need not choose, and drops them. It returns false if
// that takes too many steps.
func (s *search) assignFree(p *problem) bool {
	for changed := true; changed; {
		changed = false
		if !s.spend(len(p.classes) * (2 + len(p.demands)/16)) {
			return false
		}
		for i := range p.classes {
			c := &p.classes[i]
			for at := range c.can.all(len(p.demands)) {
				if p.demands[at] <= 0 {
					c.can.remove(at)
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
func (s *search) conflict(set *requirementSet) int {
	for at := range set.all(len(s.apart)) {
		if set.meets(&s.apart[at]) {
			return at
		}
	}
	return -1
}

// options returns subsets that one person can be assigned to, among them all that cannot
// be extended. It appends at most one for each step that is left.
func (s *search) options(set requirementSet, list []requirementSet) []requirementSet {
	at := s.conflict(&set)
	if at < 0 {
		return append(list, set)
	}
	list = s.options(set.minus(&s.apart[at]), list)
	if !s.spend(2 + len(s.apart)/16) {
		return list
	}
	set.remove(at)
	return s.options(set, list)
}

// assign assigns a number of people to the requirements of a set.
func (p *problem) assign(set *requirementSet, people int) {
	for at := range set.all(len(p.demands)) {
		p.demands[at] -= people
	}
}

// scarcest returns the requirement whose demand is not met and that has the fewest people
// to spare, and how many, or -1 if all demands are met.
func (p *problem) scarcest() (scarcest, spare int) {
	spares := make([]int, len(p.demands))
	for i := range p.classes {
		c := &p.classes[i]
		for at := range c.can.all(len(p.demands)) {
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
func classesOf(can []requirementSet, of *requirementSet) []class {
	count := make(map[requirementSet]int)
	for i := range can {
		if set := can[i].and(of); !set.isEmpty() {
			count[set]++
		}
	}
	sets := slices.SortedFunc(maps.Keys(count), func(a, b requirementSet) int { return slices.Compare(a[:], b[:]) })
	classes := make([]class, len(sets))
	for i, set := range sets {
		classes[i] = class{set, count[set]}
	}
	return classes
}
