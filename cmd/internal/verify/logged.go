package verify

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// A logged is an event in the log, with the body that the ledger lists.
type logged struct {
	index int64 // among all events of the org
	isOld bool  // it is in a log that was replaced
	leaf  proof.Leaf
	body  []byte      // nil if it was pruned
	salt  *proof.Salt // nil if the ledger does not list it
	about about
}

// opens checks that the leaf commits to the body. proof is that of the event, which takes a request of
// its own; it is read, and nil if there is none, unless the ledger lists the salt.
func (e *logged) opens(proved []byte) verify.Check {
	switch {
	case e.salt != nil:
		_, check := verify.Open(proof.Opening{Salt: e.salt, Leaf: e.leaf}, e.body)
		return check
	case proved != nil:
		return verify.Event{ID: e.leaf.Event, Body: e.body, Proof: proved}.Opens(e.leaf)
	}
	return verify.Skipped(verify.CheckBody, "it was recorded while %s", unsigned)
}

// unsigned is when events have no proof.
const unsigned = "the log, which was replaced, was not signed"

// about is what an event is about.
type about struct {
	ID     string `json:"id"`
	Repo   string `json:"repo"`
	Commit string `json:"commit"`
}

// enrolments has the events of identities in the log. That the log has their bodies is only checked if a
// passkey must be looked up, because it takes a request for each.
type enrolments struct {
	end      int64           // how many events of the org were read
	unopened []logged        // in the order of the log
	passkeys verify.Passkeys // by the other events
}

// newEnrolments returns what is to be read: events of an org up to an end, without those before the logs
// that are read.
func newEnrolments(before, end int64) enrolments {
	n := enrolments{end: end}
	if before > 0 {
		n.passkeys.Gap = fmt.Sprintf("%d events are in earlier logs of the org", before)
	}
	return n
}

// add adds the next event of the log, if it is of an identity.
func (n *enrolments) add(e logged) {
	if e.leaf.Type == ledger.EventIdentity {
		n.unopened = append(n.unopened, e)
	}
}
