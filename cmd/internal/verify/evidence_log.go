package verify

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/cmd/internal/evidence"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/identity/sigstore"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/ledger/proof/trustpolicy"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// checkpoint verifies the checkpoint of the export, and returns the checks of the log.
func (x *exportAudit) checkpoint() ([]verify.Check, error) {
	failed := func(err error) ([]verify.Check, error) {
		return []verify.Check{verify.Failure(verify.CheckCheckpoint, "%v", err)}, nil
	}
	signed, err := x.archive.File(evidence.CheckpointFile)
	if err != nil {
		return failed(err)
	}
	says, err := proof.ReadCheckpoint(signed)
	if err != nil {
		return failed(err)
	}
	log, err := x.trust(says.Origin)
	if err != nil {
		return nil, err
	}
	c, err := proof.OpenCheckpoint(signed, log.open)
	if err != nil {
		return failed(err)
	}

	x.signed, x.newest = signed, c
	consistency, err := x.agree(log.known, [][]byte{signed}, log.open)
	if err != nil {
		return nil, err
	}
	s := &Session{Options: x.Options, key: log.key}
	passed := verify.Passed(verify.CheckCheckpoint, "%d events of %s, signed by its key %s", c.Size, c.Origin,
		verify.KeyID(log.open))
	checks := append([]verify.Check{passed, consistency}, s.witnesses(signed)...)
	if err := x.vkey(log.key); err != nil {
		checks = append(checks, verify.Failure(verify.CheckCheckpoint, "%v", err))
	}
	return checks, nil
}

// vkey checks that the key that the export names is the trusted one.
func (x *exportAudit) vkey(key trustpolicy.Key) error {
	text, err := x.archive.File(evidence.KeyFile)
	if err == nil && string(text) != key.String()+"\n" {
		err = fmt.Errorf("%s has another key than the trusted one, %s", evidence.KeyFile, key)
	}
	return err
}

// identities reads the keys of signers, unless they are pinned.
func (x *exportAudit) identities() error {
	var list []identity.Identity
	if err := x.archive.JSON(evidence.IdentitiesFile, &list); err != nil {
		return err
	}
	if len(list) > verify.MaxKeys {
		return fmt.Errorf("there are more than %d", verify.MaxKeys)
	}

	var roots []identity.TrustedRoot
	if x.archive.Has(evidence.TrustedRootsFile) {
		if err := x.archive.JSON(evidence.TrustedRootsFile, &roots); err != nil {
			return err
		}
	}
	if len(roots) > verify.MaxRoots {
		return fmt.Errorf("%s has more than %d versions of trusted roots", evidence.TrustedRootsFile, verify.MaxRoots)
	}
	x.keys = verify.Listed(list, sigstore.ParseRoot, roots...)
	if x.Keys != nil {
		x.keys = *x.Keys
	}
	return nil
}

// readEvents verifies that the log has the events, and keeps their bodies.
func (x *exportAudit) readEvents() error {
	ids := make(map[string]bool)
	for _, name := range x.archive.Names() {
		if file, ok := strings.CutPrefix(name, "events/"); ok {
			id, _, _ := strings.Cut(file, ".")
			ids[id] = true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		if err := x.event(id); err != nil {
			return err
		}
	}
	slices.SortFunc(x.places, func(a, b verify.Place) int {
		return cmp.Or(cmp.Compare(epochOf(a), epochOf(b)), cmp.Compare(a.Index, b.Index))
	})
	x.enrolments()
	return nil
}

// enrolments numbers the events in the order of the log, and finds those about passkeys.
func (x *exportAudit) enrolments() {
	for n, p := range x.places {
		x.numbers[p.Event] = int64(n)
		body := x.events[p.Event]
		if p.Type != ledger.EventIdentity || body == nil {
			continue
		}
		err := decode(body, func(e ledger.IdentityEvent) error {
			x.passkeys.Add(int64(n), e)
			return nil
		})
		if err != nil {
			x.ofEvents.Add(p.Event, verify.Failure(verify.CheckBody, "parse the event: %v", err))
		}
	}
}

func epochOf(p verify.Place) int {
	_, epoch, _ := verify.SplitOrigin(p.Checkpoint.Origin)
	return epoch
}

// event verifies an event.
func (x *exportAudit) event(id string) error {
	var err error
	e := verify.Event{ID: id}
	if e.Proof, err = x.archive.File(evidence.ProofFile(id)); err != nil {
		x.ofEvents.Add(id, verify.Failure(verify.CheckInclusion, "%v", err))
		return nil
	}
	bodyFile := evidence.EventFile(id)
	if e.Body, err = x.archive.File(bodyFile); err != nil && !x.pruned[bodyFile] {
		x.ofEvents.Add(id, verify.Failure(verify.CheckBody, "%v", err))
		return nil
	}

	origin := e.Origin()
	if origin != x.newest.Origin && !verify.IsLaterEpoch(origin, x.newest.Origin) {
		x.ofEvents.Add(id, verify.Failure(verify.CheckInclusion, "its proof is not valid, or of the log %.200q", origin))
		return nil
	}
	log, err := x.trust(origin)
	if err != nil {
		return fmt.Errorf("the event %s: %w", id, err)
	}
	isThere, isPruned := e.Body != nil, e.IsPruned()
	if isPruned {
		e.Body = nil
	}
	place, checks := e.Verify(log.open)
	switch {
	case checks[0].Name != verify.CheckBody || checks[0].Status == verify.Failed:
		e.Body = nil
	case isPruned && isThere:
		checks[0] = verify.Failure(verify.CheckBody, "%s is there, and its proof has nothing to compare it with", bodyFile)
	}
	if place.Signed != nil && origin == x.newest.Origin && !bytes.Equal(place.Signed, x.signed) {
		place, checks = verify.Place{}, []verify.Check{verify.Failure(verify.CheckInclusion,
			"its proof leads to another checkpoint than %s", evidence.CheckpointFile)}
	}
	x.ofEvents.Add(id, slices.DeleteFunc(checks, func(c verify.Check) bool {
		return c.Name == verify.CheckCheckpoint && c.Status == verify.OK // it is the one of all, and reported once
	})...)
	if place.Signed == nil {
		x.wrong[id] = e.Type()
	} else {
		x.places = append(x.places, place)
		x.events[id] = e.Body
	}
	return nil
}

// usedSigners checks that the log has the identities with which signatures were verified.
func (x *exportAudit) usedSigners() {
	for _, i := range x.keys.Used() {
		x.usedSigner(i.ID, i.Event, inOrg(x.manifest.Org, i.Org, func(e *ledger.IdentityEvent) verify.Check {
			return verify.LoggedIdentity(i, e)
		}))
	}
	for _, r := range x.keys.UsedRoots() {
		x.usedSigner(rootID(r), r.Event, inOrg(x.manifest.Org, r.Org, func(e *ledger.IdentityEvent) verify.Check {
			return verify.LoggedTrustedRoot(r, e)
		}))
	}
}

func (x *exportAudit) usedSigner(id, event string, logged func(*ledger.IdentityEvent) verify.Check) {
	body, isProved := x.events[event]
	_, isWrong := x.wrong[event]
	switch {
	case isWrong:
		x.ofIdentities.Add(id, verify.Skipped(verify.CheckIdentity, "the event about it is wrong"))
	case event == "":
		x.ofIdentities.Add(id, verify.Skipped(verify.CheckIdentity, "the server had not logged it yet (export it again)"))
	case !isProved:
		x.ofIdentities.Add(id, verify.Failure(verify.CheckIdentity, "the export does not prove its event, %.100q", event))
	case body == nil:
		x.ofIdentities.Add(id, verify.Skipped(verify.CheckIdentity, verify.PrunedEvent))
	default:
		x.ofIdentities.Add(id, ofIdentity(body, logged))
	}
}
