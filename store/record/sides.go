package record

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Attest verifies an attestation with the keyring of the org, and records it like Record. If the
// keyring changes before it is recorded, Attest verifies it again.
func (re *Recorder) Attest(
	ctx context.Context, org, repo string, verify Verify,
) (rec ledger.AttestationRecord, created bool, err error) {
	r, err := re.attest(ctx, org, repo, verify)
	if err != nil {
		return rec, false, err
	}
	return r.Record, r.Created, re.proveSides(ctx, r)
}

// Record records a verified attestation and its effects: the commit if it is new, its
// state and the events. If the statement is already recorded, it returns that record and
// false, or CodeStaleStatement if the same signer has since attested something else for
// the predicate. keyringVersion is the version of the keyring that verified the
// attestation; if it is not the latest, Record returns ErrKeyringChanged. So it does for a statement whose meaning
// depends on the web URL of the repo, if that has one.
func (re *Recorder) Record(
	ctx context.Context, org, repo string, a *attestation.Attestation, keyringVersion int64,
) (rec ledger.AttestationRecord, created bool, err error) {
	r := NewRecording(org, repo, a, keyringVersion)
	if err := re.record(ctx, r); err != nil {
		return rec, false, err
	}
	return r.Record, r.Created, re.proveSides(ctx, r)
}

// proveSides registers the objects that came before a claim of a merge has registered its commits.
func (re *Recorder) proveSides(ctx context.Context, r *Recording) error {
	m := r.Attestation.Merge
	if m == nil {
		return nil
	}
	const done = "the claim was recorded, but the objects of its commits were not registered (send them again)"
	objects, err := re.stored(ctx, r.Org, r.Repo, m.Source.SHA, m.Parent.SHA)
	for _, sha := range []string{m.Source.SHA, m.Parent.SHA} {
		if object := objects[sha]; err == nil && object != nil {
			_, _, err = re.Register(ctx, r.Org, r.Repo, sha, ledger.Registration{Object: object})
		}
	}
	switch {
	case err == nil:
		return nil
	case txn.IsUnavailable(err) || ctx.Err() != nil:
		return ledger.Errorf(ledger.CodeStorageUnavailable, done+": %v", err)
	}
	return fmt.Errorf(done+": %w", err)
}
