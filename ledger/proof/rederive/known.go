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
	read   map[string]*object
	inUse  bool // states may depend on them
	cloned bool // there is a clone
}

// An object is what the object of a commit says.
type object struct {
	lineage.Node
	wrote ancestry.Commit
}

// learn notes that the ledger knows the object of a commit from now on.
func (o *objects) learn(sha string, m moment) {
	if _, ok := o.known[sha]; !ok {
		o.known[sha] = m
	}
}

// A basis is what an answer depends on.
type basis struct {
	// from is the last event that the answer depends on, and to the next one that may change it: the answer is the same at
	// any moment between them.
	from, to int64
	// changed is the time of the last change that the ledger applies in the background: new evidence of other commits, or
	// an object.
	changed ledger.Time
	// learnt is the last event about what is known of other commits. The ledger has only the present record of each.
	learnt int64
	// objectAt is the last event by which one of the objects became known.
	objectAt int64
	// lacks reports whether an object was not read that the ledger knew.
	lacks bool
}

// include adds what an answer about another commit depends on.
func (b *basis) include(other basis) {
	b.from, b.to = max(b.from, other.from), min(b.to, other.to)
	b.changed = max(b.changed, other.changed)
	b.learnt, b.objectAt = max(b.learnt, other.learnt), max(b.objectAt, other.objectAt)
	b.lacks = b.lacks || other.lacks
}

// isFor reports whether the answer is the same at another moment.
func (b *basis) isFor(m moment) bool { return b.from < m.index && m.index <= b.to }

// A mainlineAnswer says what a commit of the mainline meets, or why that is not known.
type mainlineAnswer struct {
	basis
	met policy.Met
	why string
}

const (
	// maxMainline is the maximum number of commits of the mainline that are followed below a commit.
	maxMainline = 10_000
	// maxAnswers is the maximum number of derived answers about the mainline: each is about a commit, at a time.
	maxAnswers = 200_000
)
