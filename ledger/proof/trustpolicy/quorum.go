package trustpolicy

import "fmt"

// Satisfied reports whether the quorum is reached if these witnesses, by name, have
// cosigned.
func (p *Policy) Satisfied(cosigned func(witness string) bool) bool {
	if p.Quorum == None {
		return true
	}
	witnessed := make(map[string]bool, len(p.Witnesses)+len(p.Groups))
	for _, w := range p.Witnesses {
		witnessed[w.Name] = cosigned(w.Name)
	}
	for _, g := range p.Groups { // its members are defined before it
		witnessed[g.Name] = g.count(witnessed) >= g.Threshold
	}
	return witnessed[p.Quorum]
}

// count returns how many members have witnessed.
func (g Group) count(witnessed map[string]bool) int {
	n := 0
	for _, member := range g.Members {
		if witnessed[member] {
			n++
		}
	}
	return n
}

// describe says what the quorum demands.
func (p *Policy) describe() string {
	for _, g := range p.Groups {
		if g.Name == p.Quorum {
			return fmt.Sprintf("%q, %d of %d members", g.Name, g.Threshold, len(g.Members))
		}
	}
	return fmt.Sprintf("%q", p.Quorum)
}
