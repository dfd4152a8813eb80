package signers

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// LogIdentities logs the identities that were added before a release that logs them, so
// that the log has every identity that has ever signed.
func (sg *Signers) LogIdentities(ctx context.Context) error {
	for {
		ids, err := txn.ReadLoose(ctx, sg.db, txn.ForWrite(""), func(rd txn.Reader) ([]int64, error) {
			return txn.All(rd, txn.ScanID, `
SELECT id FROM identities /*+index identities_to_log*/ WHERE event_id = '' ORDER BY id LIMIT ?`, logIdentitiesBatch)
		})
		if err != nil || len(ids) == 0 {
			return err
		}
		_, err = txn.Write(ctx, sg.db, sqldb.Write{Yields: true, Owners: nil},
			func(t *txn.Tx) (struct{}, error) { return struct{}{}, sg.logListed(t, ids) })
		if err != nil {
			return err
		}
	}
}

// logListed logs identities, unless they were logged since they were read.
func (sg *Signers) logListed(t *txn.Tx, ids []int64) error {
	for _, id := range ids {
		i, err := ScanIdentity(t.Row(SelectIdentity+"WHERE i.id = ?", id))
		if err != nil {
			return fmt.Errorf("read identity: %w", err)
		}
		if i.Row.Event != "" {
			continue
		}

		orgID, err := t.OrgID(i.Row.Org)
		if err != nil {
			return err
		}
		if _, err := sg.logIdentity(t, orgID, i.Row, i, ledger.IdentityKnown); err != nil {
			return err
		}
	}
	return nil
}
