package verify

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
)

// CheckBody is the name of the check that a leaf commits to the body of its event.
const CheckBody = "body"

// A Body is what the body of an event says.
type Body struct {
	ledger.EventBody
	// Org and Repo are the names that it has, of its time.
	Org, Repo string
}

// Open checks that a leaf commits to the body of its event, and returns what it says, which is empty if the
// check has failed. What this release does not know of the body is not checked.
func Open(o proof.Opening, body []byte) (Body, Check) {
	if err := o.VerifyHash(body); err != nil {
		return Body{}, Failure(CheckBody, "%v", err)
	}
	return Read(o.Leaf, body)
}

// Read is Open without the hash in the leaf.
func Read(leaf proof.Leaf, body []byte) (b Body, c Check) {
	var says struct {
		ID   string           `json:"id"`
		Type ledger.EventType `json:"type"`
		Org  string           `json:"org"`
		Repo string           `json:"repo"`
	}
	err := json.Unmarshal(body, &says)
	if err == nil {
		b.EventBody, err = ledger.ReadEvent(leaf.Type, body)
	}
	if err != nil {
		return Body{}, Failure(CheckBody, "parse the body of %s: %v", leaf.Event, err)
	}
	if err := leaf.CheckEvent(says.ID, says.Type); err != nil {
		return Body{}, Failure(CheckBody, "%v", err)
	}

	b.Org = says.Org
	if leaf.Type != ledger.EventAudit { // else the repo is that of the action, and the event is of the org
		b.Repo = says.Repo
	}
	if b.Unknown != "" {
		return b, Skipped(CheckBody, "it has %s, which this version of ledgerd does not know", b.Unknown)
	}
	return b, Passed(CheckBody, "the leaf of %s commits to its %d bytes", leaf.Event, len(body))
}

// Pruned is the check of a body that was pruned.
func Pruned(leaf proof.Leaf) Check {
	if !leaf.Type.IsPrunable() {
		return Failure(CheckBody, "it was pruned, and events of the type %s never are", leaf.Type)
	}
	return Skipped(CheckBody, "it was pruned, so nothing shows what the leaf commits to")
}

// Names checks that the body of an event has the names that its row has, of its time.
func (b Body) Names(org, repo string) error {
	if b.Org != org || b.Repo != repo {
		return fmt.Errorf("it is an event of %q in %q, and the ledger has it as one of %q in %q", b.Repo, b.Org, repo, org)
	}
	return nil
}
