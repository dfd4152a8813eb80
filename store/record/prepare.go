package record

import (
	"context"

	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/facts"
)

// An unjudged is the txn.Unready error of a recording that needs verdicts: of the missing expressions
// on its own attestation, and those on recorded ones.
type unjudged struct {
	*Recording
	missing     []string
	unevaluated []facts.Unevaluated
}

func (*unjudged) Error() string { return "expressions have not been evaluated" }

// Prepare implements txn.Unready.
func (u *unjudged) Prepare(ctx context.Context) error {
	u.re.active.Put(repoKey(u.Org, u.Repo), u.contract)
	if err := u.re.evaluateNew(ctx, u.Recording, u.missing); err != nil {
		return err
	}
	return u.re.states.StoreMissing(ctx, u.Org, u.unevaluated)
}

// checkVerdicts returns an error of the type *unjudged unless all is evaluated that the attestation
// needs to be recorded on a commit, which is nil if it is new.
func (r *Recording) checkVerdicts(s *facts.Commit) error {
	if !r.contract.NeedsVerdicts() {
		return nil
	}
	u := &unjudged{Recording: r}
	e := r.evidence()
	for _, x := range r.contract.Expressions(&e) {
		if _, ok := r.verdicts[x]; !ok {
			u.missing = append(u.missing, x)
		}
	}
	if s != nil {
		u.unevaluated = s.Unevaluated
	}
	if len(u.missing)+len(u.unevaluated) > 0 {
		return u
	}
	return nil
}

// evaluateNew evaluates expressions on an attestation that is not recorded yet.
func (re *Recorder) evaluateNew(ctx context.Context, r *Recording, expressions []string) error {
	if len(expressions) == 0 {
		return nil
	}
	verdicts, err := re.states.Evaluate(ctx, r.Attestation.Payload, expressions)
	if err != nil {
		return err
	}
	if r.verdicts == nil {
		r.verdicts = make(map[string]policy.Verdict)
	}
	for i, x := range expressions {
		r.verdicts[x] = verdicts[i]
	}
	return nil
}

// verify verifies an attestation with the keyring of the org, and returns the version of the keyring.
// It first tries the keyring that was read last, which may be out of date. That is safe: the write
// compares the version of a keyring that accepted the attestation, and verify reads the present
// keyring before it rejects one.
func (re *Recorder) verify(
	ctx context.Context, org string, verify Verify,
) (a *attestation.Attestation, version int64, err error) {
	last, ok := re.signers.LastKeyring(org)
	if ok {
		if a, err = verify(last.Keyring); err == nil || attestation.IsMalformed(err) {
			return a, last.Version, err
		}
	}
	keyring, version, readErr := re.signers.Keyring(ctx, org)
	if readErr != nil {
		return nil, 0, readErr
	}
	if !ok || version != last.Version {
		a, err = verify(keyring)
	}
	return a, version, err
}
