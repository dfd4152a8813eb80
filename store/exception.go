package store

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/txn"
)

// maxExceptions is the number of exceptions of one commit that are read to derive its
// state: the newest that are not distrusted. Older ones do not count. More exceptions can thus take effect away
// from others, but an exception that was ended never counts again.
const maxExceptions = 200

// gatherExceptions reads the exceptions of commits whose contract allows any, after their
// evidence, which shows which commits have some.
func (rd reader) gatherExceptions(list []*subject) error {
	for _, s := range list {
		if !s.d.contract.Exceptions.IsOpen() || !hasException(s.facts.Evidence) {
			continue
		}
		var err error
		if s.facts.Exceptions, err = rd.exceptionsOf(s.id); err != nil {
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

// exceptionsOf reads the newest exceptions of a commit that are not distrusted, the oldest
// of them first.
func (rd reader) exceptionsOf(commitID int64) (list []policy.Exception, err error) {
	err = rd.Each(func(row txn.Scanner) error {
		var x policy.Exception
		var signerID int64
		var trusted bool
		err := row.Scan(&x.Attestation, &x.Requirement, &x.Reason, &x.Until, &signerID, &x.RecordedAt, &trusted)
		if err != nil || !trusted {
			return err
		}

		signer, err := rd.s.Signers.Signer(rd.Reader, signerID)
		if err != nil {
			return err
		}
		x.Signer = signer.DN
		if list = append(list, x); len(list) == maxExceptions {
			return txn.ErrFull
		}
		return nil
	}, `
SELECT a.attestation_id, x.requirement, x.reason, x.ends_at, a.signer_id, `+ageOf+`, `+isTrusted+`
FROM exceptions x /*+index exceptions_by_commit*/ /*+ordered*/ JOIN attestations a ON a.id = x.attestation_id
WHERE x.commit_id = ? ORDER BY x.attestation_id DESC LIMIT ?`, commitID, txn.MaxExamined)

	if err != nil && !errors.Is(err, txn.ErrFull) {
		return nil, fmt.Errorf("read exceptions: %w", err)
	}
	slices.Reverse(list)
	return list, nil
}

// addException adds an exception, which the newest attestation of a commit has granted or ended, to the facts.
func (t *tx) addException(s *subject, x policy.Exception) {
	t.batch.rows.exceptions.Add(s.newest, s.repoID, s.id, x.Requirement, x.Reason, int64(x.Until))
	if s.d.contract.Exceptions.IsOpen() {
		list := append(s.facts.Exceptions, x)
		s.facts.Exceptions = list[max(0, len(list)-maxExceptions):]
	}
}
