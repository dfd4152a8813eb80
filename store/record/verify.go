package record

import (
	"context"

	"github.com/ledgerd/ledgerd/ledger/attestation"
)

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

// An unverified is the txn.Unready error of a recording that was verified with an earlier keyring.
type unverified struct{ *Recording }

func (*unverified) Error() string { return ErrKeyringChanged.Error() }

// Prepare implements txn.Unready.
func (u *unverified) Prepare(ctx context.Context) error {
	if u.verify == nil {
		return ErrKeyringChanged
	}
	keyring, version, err := u.re.signers.Keyring(ctx, u.Org)
	if err != nil {
		return err
	}
	a, err := u.verify(keyring)
	if err != nil {
		return err
	}
	u.SetVerified(a, version)
	return nil
}
