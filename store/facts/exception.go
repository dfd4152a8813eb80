package facts

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/txn"
)

// MaxExceptions is the number of exceptions of one commit that are read to derive its
// state: the newest that are not distrusted. Older ones do not count. More exceptions can thus take effect away
// from others, but an exception that was ended never counts again.
const MaxExceptions = 200

// gatherExceptions reads the exceptions of commits whose contract allows any, after their
// evidence, which shows which commits have some.
func (fa *Facts) gatherExceptions(rd txn.Reader, list []*Commit) error {
	for _, s := range list {
		if !s.Deriver.Contract.Exceptions.IsOpen() || !hasException(s.Facts.Evidence) {
			continue
		}
		var err error
		if s.Facts.Exceptions, err = fa.ExceptionsOf(rd, s.ID); err != nil {
			return err
		}
	}
	return nil
}

func hasException(evidence []policy.Evidence) bool {
	return slices.ContainsFunc(evidence, func(e policy.Evidence) bool {
		return e.PredicateType == attestation.ExceptionPredicateType
	})
}

// ExceptionsOf reads the newest exceptions of a commit that are not distrusted, the oldest
// of them first.
func (fa *Facts) ExceptionsOf(rd txn.Reader, commitID int64) (list []policy.Exception, err error) {
	err = rd.Each(func(row txn.Scanner) error {
		var x policy.Exception
		var signerID int64
		var trusted bool
		err := row.Scan(&x.Attestation, &x.Requirement, &x.Reason, &x.Until, &signerID, &x.RecordedAt, &trusted)
		if err != nil || !trusted {
			return err
		}

		signer, err := fa.signers.Signer(rd, signerID)
		if err != nil {
			return err
		}
		x.Signer = signer.DN
		if list = append(list, x); len(list) == MaxExceptions {
			return txn.ErrFull
		}
		return nil
	}, `
SELECT a.attestation_id, x.requirement, x.reason, x.ends_at, a.signer_id, `+AgeOf+`, `+IsTrusted+`
FROM exceptions x /*+index exceptions_by_commit*/ /*+ordered*/ JOIN attestations a ON a.id = x.attestation_id
WHERE x.commit_id = ? ORDER BY x.attestation_id DESC LIMIT ?`, commitID, txn.MaxExamined)

	if err != nil && !errors.Is(err, txn.ErrFull) {
		return nil, fmt.Errorf("read exceptions: %w", err)
	}
	slices.Reverse(list)
	return list, nil
}

// AddException adds an exception, which the newest attestation of a commit has granted or ended, to the facts.
func (fa *Facts) AddException(s *Commit, x policy.Exception) {
	fa.rows.exceptions.Add(s.Newest, s.RepoID, s.ID, x.Requirement, x.Reason, int64(x.Until))
	if s.Deriver.Contract.Exceptions.IsOpen() {
		list := append(s.Facts.Exceptions, x)
		s.Facts.Exceptions = list[max(0, len(list)-MaxExceptions):]
	}
}
