package derived

import (
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// A commit is a row of the table commits, with its transitions.
type commit struct {
	id, attestations, newest int64
	since, registered        ledger.Time
	sha                      string
	state                    ledger.State
	transitions              []transition
	evidence                 evidenceOf
}

// stateBefore returns the state that the commit had before an event. The IDs of the events of an org are
// in the order of their recording.
func (c *commit) stateBefore(event string) ledger.State {
	n, _ := slices.BinarySearchFunc(c.transitions, event, func(t transition, event string) int {
		return strings.Compare(t.event, event)
	})
	if n == 0 {
		return ledger.Draft
	}
	return c.transitions[n-1].to
}

// A transition is a row of the table transitions, with its event.
type transition struct {
	from, to ledger.State
	at       ledger.Time
	cause    ledger.Cause
	event    string // its ID; empty if it does not exist
	kind     ledger.EventType
	repoID   int64
	body     []byte
}

// A topic is what the latest attestation of a signer is about: the key of the table latest, within a commit.
type topic struct {
	predicate int64
	slot      string
	signer    int64
}

// A latest is an attestation that is the latest, or is said to be.
type latest struct {
	id     int64  // 0: none
	public string // its ID; empty if the commit does not have it
	status ledger.Status
}

// evidenceOf is what is stored of the attestations of a commit, and what is derived again.
type evidenceOf struct {
	stored, derived map[topic]latest
	chain           []predecessor
	// replaced are the topics whose attestation is distrusted, and about to be replaced.
	replaced map[topic]bool
	// unlike are the attestations whose rows do not say whether the commit was PROMOTABLE as its
	// transitions do. If it was rolled back, deployments may count as recorded in another state.
	unlike       []string
	isRolledBack bool
	// uncounted are, by row, those of a commit that was PROMOTABLE whose rows say that it was not. Deployments among them
	// may not have counted for what they shipped.
	uncounted map[int64]string
	// isUnmapped reports whether an attestation is still to be mapped by the rules of this release.
	isUnmapped bool
}

// judge compares what the row of an attestation says of the state of its commit with that before its event.
// Of what a DEPLOYED commit was besides, the transitions say nothing.
func (e *evidenceOf) judge(before ledger.State, l latest, whilePromotable bool) {
	switch {
	case before == ledger.Deployed || whilePromotable == (before == ledger.Promotable):
	case whilePromotable:
		e.unlike = append(e.unlike, l.public)
	default:
		if e.uncounted == nil {
			e.uncounted = make(map[int64]string)
		}
		e.uncounted[l.id] = l.public
	}
}

// A predecessor is an attestation of a commit, with the one before it as its row says.
type predecessor struct{ id, previous int64 }

// add adds an attestation.
func (e *evidenceOf) add(t topic, l latest) {
	if old, ok := e.derived[t]; !ok || policy.IsLater(l.status, old.status, l.id > old.id) {
		e.derived[t] = l
	}
}
