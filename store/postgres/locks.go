package postgres

import (
	"slices"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// locks are the orgs that a transaction locks, by name and by row id, or all orgs.
type locks struct {
	names  []string
	owners []int64
	all    bool
}

// locksOf returns the locks that writes need.
func locksOf(writes []*sqldb.Write) (l locks) {
	for _, w := range writes {
		l.add(w)
	}
	return l
}

// add adds the orgs of a write.
func (l *locks) add(w *sqldb.Write) {
	switch {
	case w.Independent:
	case w.Org != "":
		if !slices.Contains(l.names, w.Org) {
			l.names = append(l.names, w.Org)
		}
	case len(w.Owners) == 0:
		l.all = true
	default:
		for _, id := range w.Owners {
			if !slices.Contains(l.owners, id) {
				l.owners = append(l.owners, id)
			}
		}
	}
}

func isIndependent(w *sqldb.Write) bool { return w.Independent }

// isPatient reports whether writes wait for their locks: not if that would delay some that have not waited
// yet. late are those that have.
func isPatient(writes, late []*sqldb.Write) bool {
	waited := 0
	for _, w := range writes {
		if slices.Contains(late, w) {
			waited++
		}
	}
	return waited == 0 || waited == len(writes)
}

// lockedRows are the orgs that a transaction has locked, with the latest of their stamps, and the
// time at which they were locked.
type lockedRows struct {
	ids        []int64
	names      []string
	all        bool
	stamp, now int64
}

// hasAll reports whether all orgs were found.
func (r lockedRows) hasAll(l locks) bool {
	missing := func(name string) bool { return !slices.Contains(r.names, name) }
	return r.all || !slices.ContainsFunc(l.names, missing)
}

// uncovered returns the writes about orgs that are not locked.
func (r lockedRows) uncovered(writes []*sqldb.Write) (list []*sqldb.Write) {
	for _, w := range writes {
		if !r.covers(w) {
			list = append(list, w)
		}
	}
	return list
}

// covers reports whether a write is only about orgs that are locked.
func (r lockedRows) covers(w *sqldb.Write) bool {
	switch {
	case w.Independent:
		return true
	case w.Org != "":
		return slices.Contains(r.names, w.Org)
	}
	missing := func(id int64) bool { return !slices.Contains(r.ids, id) }
	return len(w.Owners) > 0 && !slices.ContainsFunc(w.Owners, missing)
}

// Statements that take locks, in the order of row ids: so two transactions never wait for each
// other. What they aggregate is the newest version of each row.
const (
	// lockRows is the beginning of the next two.
	lockRows = `
SELECT coalesce(array_agg(id), '{}'), coalesce(array_agg(name::text), '{}'), coalesce(max(stamp), 0)
FROM (SELECT id, name, stamp FROM orgs WHERE name = ANY ($1) OR id = ANY ($2) ORDER BY id FOR NO KEY UPDATE`
	lockSome = lockRows + ") locked"
	lockFree = lockRows + " SKIP LOCKED) locked"
	lockAll  = `
SELECT coalesce(max(stamp), 0) FROM (SELECT stamp FROM orgs ORDER BY id FOR NO KEY UPDATE) locked`
	// readStamp reads the latest stamp of those who had locked all orgs.
	readStamp = "SELECT stamp, " + clockMillis + " FROM ledger"
)
