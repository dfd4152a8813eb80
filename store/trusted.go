package store

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/txn"
)

// An identity whose key was compromised is distrusted since a time: what it has made
// trusted since then counts as if it had not been recorded. It stays recorded, and nothing
// is added to it, because the identity is revoked.

// ageOf is when an attestation a was recorded. Earlier releases have corrected it if their clock had
// been ahead.
const ageOf = "CASE a.aged_from WHEN 0 THEN a.recorded_at ELSE a.aged_from END"

// isTrusted is the condition that an attestation a is not distrusted.
const isTrusted = `
NOT EXISTS (SELECT 1 FROM identities d WHERE d.identity_id = a.identity_id AND d.distrusted_since > 0
  AND d.distrusted_since <= ` + ageOf + ")"

// markDistrusted sets which of a repo's attestations are distrusted.
func (rd reader) markDistrusted(r txn.Repo, list []txn.Keyed[ledger.AttestationRecord]) error {
	if r.Distrusts == 0 {
		return nil
	}
	rows := make([]any, len(list))
	places := make(map[int64]int, len(list))
	for i, a := range list {
		rows[i], places[a.ID] = a.ID, i
	}

	err := rd.EachIn(func(row txn.Scanner) error {
		id, err := txn.ScanID(row)
		list[places[id]].Row.Distrusted = true
		return err
	}, "SELECT a.id FROM attestations a WHERE NOT ("+isTrusted+") AND a.id IN ", 1, rows)
	if err != nil {
		return fmt.Errorf("find distrusted attestations: %w", err)
	}
	return nil
}
