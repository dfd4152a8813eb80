package sqldb

import "slices"

// Locks are the orgs that a transaction locks, by name and by row id, or all orgs.
type Locks struct {
	Names  []string
	Owners []int64
	All    bool
}

// Add adds the orgs of a write.
func (l *Locks) Add(w Write) {
	switch {
	case w.Unlocked:
	case w.Org != "":
		if !slices.Contains(l.Names, w.Org) {
			l.Names = append(l.Names, w.Org)
		}
	case len(w.Owners) == 0:
		l.All = true
	default:
		for _, id := range w.Owners {
			if !slices.Contains(l.Owners, id) {
				l.Owners = append(l.Owners, id)
			}
		}
	}
}
