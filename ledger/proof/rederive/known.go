package rederive

import (
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/ancestry"
	"github.com/ledgerd/ledgerd/ledger/lineage"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// A moment is when something happened, by the log and by the clock.
type moment struct {
	index int64
	at    ledger.Time
}

// Objects are those of commits: since when the ledger knows them, by the log, and what they say, by a clone. An object
// is what its hash says, so it may come from anywhere.
type objects struct {
	known  map[string]moment // by the commit
	order  []string          // the commits
	read   map[string]*object
	inUse  bool // states may depend on them
	cloned bool // there is a clone
}

// An object is what the object of a commit says.
type object struct {
	lineage.Node
	wrote ancestry.Commit
	tree  string
}

// learn notes that the ledger knows the object of a commit from now on.
func (o *objects) learn(sha string, m moment) {
	if _, ok := o.known[sha]; !ok {
		o.known[sha] = m
		o.order = append(o.order, sha)
	}
}

// A rest is on what an answer about a moment rests.
type rest struct {
	// from is the last event on which it rests, and to the next one that may change it: at any moment between, the answer
	// is the same.
	from, to int64
	// changed is when that has last changed of which the ledger derives states in the background: evidence of other
	// commits, and objects.
	changed ledger.Time
	// learnt is the last event of what is known of other commits, of which the ledger has the present record alone.
	learnt int64
	// objectAt is the last event by which an object became known on which it rests.
	objectAt int64
	// lacks reports whether an object is not there that the ledger knew.
	lacks bool
}

// include adds on what another answer rests, about another commit.
func (r *rest) include(other rest) {
	r.from, r.to = max(r.from, other.from), min(r.to, other.to)
	r.changed = max(r.changed, other.changed)
	r.learnt, r.objectAt = max(r.learnt, other.learnt), max(r.objectAt, other.objectAt)
	r.lacks = r.lacks || other.lacks
}

// isFor reports whether the answer is the same at another moment.
func (r *rest) isFor(m moment) bool { return r.from < m.index && m.index <= r.to }

// A met is what a commit of the mainline meets.
type met struct {
	rest
	met policy.Met
	why string
}

const (
	// maxMainline is how many commits of the mainline are followed below a commit at most.
	maxMainline = 10_000
	// maxMet is how often it is derived what commits of the mainline meet, at different times.
	maxMet = 200_000
)
