package store

import (
	"database/sql"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

// An event that is pruned while its delivery is claimed, because the webhook was deleted, is not
// delivered without its body.
func TestPrunedEventIsNotDelivered(t *testing.T) {
	s, err := Open(t.Context(), NewFile(t), Options{})
	must.OK(t, err)
	t.Cleanup(func() { s.Close() })
	_, err = s.CreateOrg(t.Context(), "acme")
	must.OK(t, err)
	_, err = write(t.Context(), s, "", func(tx *tx) (int64, error) { return tx.Exec("UPDATE events SET body = x''") })
	must.OK(t, err)

	due, err := s.bodies(t.Context(), []claimedRow{
		{due: ledger.DueDelivery{ID: "dlv_1"}, event: sql.NullInt64{Int64: 1, Valid: true}},
		{due: ledger.DueDelivery{ID: "dlv_2"}, ping: sql.NullString{String: `{"id":"evt_1"}`, Valid: true}},
	})
	must.OK(t, err)
	if len(due) != 1 || due[0].ID != "dlv_2" {
		t.Errorf("the deliveries are %+v, want the ping only", due)
	}
}
