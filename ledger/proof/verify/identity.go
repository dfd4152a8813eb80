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
	var err error
	if i.Fingerprint, err = i.Digest(); err != nil { // of the key or entry itself, not as listed
		return Failure(CheckIdentity, "%v", err)
	}
	want, err := i.Logged(e.Action)
	if err != nil {
		return Failure(CheckIdentity, "%v", err)
	}

	return compareLogged(e, want)
}

// LoggedTrustedRoot checks that an event, which is known to be in the log, is about a version of a
// trusted root as the ledger lists it.
func LoggedTrustedRoot(r identity.TrustedRoot, event []byte) Check {
	var e ledger.IdentityEvent
	if err := ledger.DecodeOpen(event, &e); err != nil {
		return Failure(CheckIdentity, "parse its event: %v", err)
	}
	if e.Type != ledger.EventIdentity {
		return Failure(CheckIdentity, "its event %s has the type %s", e.ID, e.Type)
	}
	if e.Timestamp != r.CreatedAt {
		return Failure(CheckIdentity, "the log has it since %s, and the ledger lists %s", e.Timestamp, r.CreatedAt)
	}
	return compareLogged(e, r.Logged())
}

// compareLogged compares an event in the log with the one that follows from what the ledger lists.
func compareLogged(e, want ledger.IdentityEvent) Check {
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

// UsedRoots returns the versions of trusted roots that vouch for the listed identities with which
// signatures were verified.
func (k Keys) UsedRoots() (list []identity.TrustedRoot) {
	names := make(map[string]bool)
	for _, i := range k.Used() {
		if i.Sigstore != nil {
			names[i.Sigstore.TrustedRoot] = true
		}
	}
	for _, r := range k.roots {
		if names[r.Name] {
			list = append(list, r)
		}
	}
	return list
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
