package store

import (
	"database/sql"
	"encoding/hex"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/store/internal/envelope"
	"github.com/ledgerd/ledgerd/store/txn"
)

// maxRunPayload is the maximum size in bytes of a payload that is searched for the address
// of its run. Longer ones are not read.
const maxRunPayload = "16384"

// addVerification adds to attestations how their signatures were verified. Each may be in
// the list once.
func (rd reader) addVerification(list []txn.Keyed[ledger.AttestationRecord]) error {
	rows := make([]any, len(list))
	places := make(map[int64]int, len(list))
	for i, a := range list {
		rows[i], places[a.ID] = a.ID, i
	}

	err := rd.EachIn(func(row txn.Scanner) error {
		var id int64
		var digest, payload []byte
		var at sql.NullInt64
		v := &ledger.Verification{}
		if err := row.Scan(&id, &digest, &v.IdentityID, &payload, &at); err != nil {
			return err
		}
		v.EnvelopePruned = envelope.IsPruned(at)
		v.Key, v.RunURL = hex.EncodeToString(digest), attestation.RunOf(payload)
		list[places[id]].Row.Verification = v
		return nil
	}, `
SELECT a.id, k.digest, a.identity_id, CASE WHEN length(e.payload) <= `+maxRunPayload+` THEN e.payload END,
  e.payload_at
FROM attestations a /*+ordered*/ JOIN keys k ON k.id = a.key_id /*+ordered*/ JOIN envelopes e ON e.attestation_id = a.id
WHERE a.id IN `, 1, rows)
	if err != nil {
		return fmt.Errorf("find the keys of attestations: %w", err)
	}
	return nil
}
