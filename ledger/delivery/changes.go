package delivery

import (
	"slices"

	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/policy/scope"
)

// changes are the paths that the commits of a delivery change.
type changes struct {
	all  scope.Changes
	each []scope.Changes
}

// notAll says why it is not known what a delivery changes.
const notAll = "nobody has signed which paths have changed since what ran there"

// changesOf returns what the commits change, as the contract believes it.
func changesOf(c *policy.Contract, commits []Commit, base Base) changes {
	ch := changes{each: make([]scope.Changes, len(commits))}
	if !c.NeedsChanges() {
		return ch
	}
	for i := range commits {
		facts := commits[i].Facts
		if facts == nil {
			facts = new(policy.Facts)
		}
		ch.each[i] = c.ChangesOf(facts)
	}

	isKnown := true
	if c.SignsChanges() {
		isKnown = followRecords(commits, ch.each, base.Since)
		ch.all.Unknown = notAll
	}
	if isKnown && base.Follows {
		ch.all = union(ch.each)
	}
	return ch
}

// union returns what several commits change.
func union(list []scope.Changes) scope.Changes {
	paths := make(map[string]bool)
	for _, ch := range list {
		if !ch.IsKnown {
			return ch
		}
		for _, path := range ch.Paths {
			paths[path] = true
		}
	}
	all := scope.Changes{IsKnown: true, Paths: make([]string, 0, len(paths))}
	for path := range paths {
		all.Paths = append(all.Paths, path)
	}
	slices.Sort(all.Paths)
	return all
}

// followRecords sets what each commit of a delivery changes. It follows the change records from the head to their
// bases, down to the commit since which everything is shipped: the files of a commit differ from those of its base in
// the paths of its records only, whatever the commits between them have done and undone. So each of these commits is
// taken to change the paths of the records. isComplete reports whether the records lead there. If not, only commits
// with one parent have records that say what they change themselves.
func followRecords(commits []Commit, each []scope.Changes, since string) (isComplete bool) {
	d := newDelivered(commits)
	var heads []int // of the records
	for at := 0; at >= 0 && !isComplete; {
		heads = append(heads, at)
		at, isComplete = d.base(at, each[at].Bases, since)
	}
	if !isComplete {
		for i := range each {
			if p := commits[i].Parents; each[i].IsKnown && (len(p) != 1 || !slices.Contains(each[i].Bases, p[0])) {
				each[i] = scope.Changes{Unknown: notAll}
			}
		}
		return false
	}

	taken := make([]bool, len(commits))
	for _, head := range slices.Backward(heads) {
		d.take(head, taken, func(i int) { each[i] = each[head] })
	}
	return true
}

// base returns the first of the bases that is of the delivery and leads to a commit, or -1 if there is none. isComplete
// reports whether one of them is the commit since which everything is shipped.
func (d *delivered) base(of int, bases []string, since string) (at int, isComplete bool) {
	if slices.Contains(bases, since) {
		return -1, true
	}
	for _, base := range bases {
		if at, ok := d.at[base]; ok && d.leads(at, of) {
			return at, false
		}
	}
	return -1, false
}

// leads reports whether a commit is an ancestor of another one.
func (d *delivered) leads(ancestor, to int) bool {
	d.walk++
	next := []int{to}
	for len(next) > 0 {
		i := next[len(next)-1]
		next = next[:len(next)-1]
		for _, parent := range slices.Backward(d.parents[i]) {
			if parent == ancestor {
				return true
			}
			if d.walks[parent] != d.walk && d.rank[parent] < d.rank[ancestor] {
				d.walks[parent] = d.walk
				next = append(next, parent)
			}
		}
	}
	return false
}

// take calls a function for a commit and each that leads to it, unless it is taken. It takes them.
func (d *delivered) take(from int, taken []bool, visit func(i int)) {
	next := []int{from}
	for len(next) > 0 {
		i := next[len(next)-1]
		next = next[:len(next)-1]
		if taken[i] {
			continue
		}
		taken[i] = true
		visit(i)
		next = append(next, d.parents[i]...)
	}
}
