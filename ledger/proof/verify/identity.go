package verify

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// CheckIdentity is the name of the check that the log has an identity whose key is trusted.
const CheckIdentity = "identity"

// LoggedIdentity checks that an event, which is known to be in the log, is about an identity as
// the ledger lists it.
func LoggedIdentity(i identity.Identity, e *ledger.IdentityEvent) Check {
	var err error
	if i.Fingerprint, err = i.Digest(); err != nil { // of the key or entry itself, not as listed
		return Failure(CheckIdentity, "%v", err)
	}
	want, err := i.Logged(e.Action)
	if err != nil {
		return Failure(CheckIdentity, "%v", err)
	}
	return compareLogged(e, &want)
}

// LoggedTrustedRoot checks that an event, which is known to be in the log, is about a version of a
// trusted root as the ledger lists it.
func LoggedTrustedRoot(r identity.TrustedRoot, e *ledger.IdentityEvent) Check {
	if e.Timestamp != r.CreatedAt {
		return Failure(CheckIdentity, "the log has it since %s, and the ledger lists %s", e.Timestamp, r.CreatedAt)
	}
	want := r.Logged()
	return compareLogged(e, &want)
}

// compareLogged compares an event in the log with the one that follows from what the ledger lists: all fields
// but the name of the org, which may have been another one then.
func compareLogged(e, want *ledger.IdentityEvent) Check {
	want.ID, want.Type, want.Timestamp, want.Org = e.ID, e.Type, e.Timestamp, e.Org
	logged, err := fieldsOf(e)
	if err != nil {
		return Failure(CheckIdentity, "%v", err)
	}
	listed, err := fieldsOf(want)
	if err != nil {
		return Failure(CheckIdentity, "%v", err)
	}
	if e.Type != ledger.EventIdentity {
		return Failure(CheckIdentity, "its event %s has the type %s", e.ID, e.Type)
	}

	all := maps.Clone(listed)
	maps.Copy(all, logged)
	for _, field := range slices.Sorted(maps.Keys(all)) {
		if shown, want := string(listed[field]), string(logged[field]); shown != want {
			return Failure(CheckIdentity, "%s: the ledger lists %s, and event %s has %s", field, cmp.Or(shown, "none"), e.ID,
				cmp.Or(want, "none"))
		}
	}
	return Passed(CheckIdentity, "the log has it as the ledger lists it")
}

// fieldsOf returns the fields of an event as JSON, by name.
func fieldsOf(e *ledger.IdentityEvent) (fields map[string]jsontext.Value, err error) {
	text, err := json.Marshal(e)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	return fields, err
}

// IdentityEvent parses the body of an event of an identity.
func IdentityEvent(body []byte) (*ledger.IdentityEvent, error) {
	var e ledger.IdentityEvent
	if err := ledger.DecodeOpen(body, &e); err != nil {
		return nil, fmt.Errorf("parse its event: %w", err)
	}
	return &e, nil
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
