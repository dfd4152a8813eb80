package verify

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// CheckIdentity is the name of the check that the log has an identity whose key is trusted.
const CheckIdentity = "identity"

// LoggedIdentity checks that an event, which is known to be in the log, is about an identity as
// the ledger lists it.
func LoggedIdentity(i identity.Identity, event []byte) Check {
	var e ledger.IdentityEvent
	if err := ledger.DecodeOpen(event, &e); err != nil {
		return Failure(CheckIdentity, "parse its event: %v", err)
	}
	if e.Type != ledger.EventIdentity {
		return Failure(CheckIdentity, "its event %s has the type %s", e.ID, e.Type)
	}
	public, err := i.PublicKey() // which signatures are verified with, whatever fingerprint is listed
	if err != nil {
		return Failure(CheckIdentity, "%v", err)
	}
	if i.Fingerprint, err = identity.Fingerprint(public); err != nil {
		return Failure(CheckIdentity, "%v", err)
	}
	want, err := i.Logged(e.Action)
	if err != nil {
		return Failure(CheckIdentity, "%v", err)
	}

	want.ID, want.Type, want.Timestamp = e.ID, e.Type, e.Timestamp
	logged, err := json.Marshal(e)
	if err != nil {
		return Failure(CheckIdentity, "%v", err)
	}
	listed, err := json.Marshal(want)
	if err != nil {
		return Failure(CheckIdentity, "%v", err)
	}
	if !bytes.Equal(logged, listed) {
		return Failure(CheckIdentity, "the log has another key, or other terms, than the ledger lists (event %s)", e.ID)
	}
	return Passed(CheckIdentity, "the log has it as the ledger lists it")
}

// Used returns the listed identities with which signatures were verified; none if they are
// pinned.
func (k Keys) Used() (list []identity.Identity) {
	for _, i := range k.identities {
		if k.used[i.ID] {
			list = append(list, i)
		}
	}
	return slices.Clip(list)
}
