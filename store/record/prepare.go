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
	u.re.expect(repoKey(u.Org, u.Repo), func(x *expectation) { x.contract = u.contract })
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

// verify verifies an attestation with the keyring of the org, for the repo at its web URL. It first tries the keyring
// that was read last and the URL that is expected, which may be out of date. That is safe: the write compares those by
// which an attestation was accepted, and verify reads the present ones before it rejects one.
func (re *Recorder) verify(
	ctx context.Context, org, repo string, verify Verify,
) (a *attestation.Attestation, by basis, err error) {
	last, ok := re.signers.LastKeyring(org)
	expected, _ := re.expected.Get(repoKey(org, repo))
	by = basis{last.Keyring, last.Version, expected.webURL}
	if ok {
		if a, err = verify(by.place(), by.keyring); err == nil || attestation.IsMalformed(err) {
			return a, by, err
		}
	}
	present, readErr := re.present(ctx, org, repo)
	if readErr != nil {
		return nil, by, readErr
	}
	if !ok || present.version != by.version || present.webURL != by.webURL {
		a, err = verify(present.place(), present.keyring)
	}
	return a, present, err
}
