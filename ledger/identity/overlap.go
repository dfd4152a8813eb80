package identity

import "strings"

// Overlaps reports whether any DN matches both patterns.
func (p Pattern) Overlaps(q Pattern) bool {
	for attr, a := range p.values {
		if b := q.values[attr]; a != nil && b != nil && !a.overlaps(b) {
			return false
		}
	}
	return true
}

// overlaps reports whether any value matches both. If both have a wildcard, their
// beginnings and their ends decide: the one's wildcard matches all inner parts of the
// other one.
func (g parts) overlaps(h parts) bool {
	switch {
	case len(g) == 1:
		return h.match(g[0])
	case len(h) == 1:
		return g.match(h[0])
	}
	begin, other := g[0], h[0]
	end, otherEnd := g[len(g)-1], h[len(h)-1]
	return (strings.HasPrefix(begin, other) || strings.HasPrefix(other, begin)) &&
		(strings.HasSuffix(end, otherEnd) || strings.HasSuffix(otherEnd, end))
}
