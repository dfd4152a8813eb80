package webhooks_test

import (
	"database/sql"
	"testing"

	_ "modernc.org/sqlite" // reads and changes the file directly

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// An event that is pruned while its delivery is claimed, because the webhook was deleted, is not
// delivered without its body.
func TestPrunedEventIsNotDelivered(t *testing.T) {
	path := storetest.NewFile(t)
	s := must.Get(store.Open(t.Context(), path, store.Options{}))(t)
	t.Cleanup(func() { s.Close() })
	must.Get(s.CreateOrg(t.Context(), "acme"))(t)
	db := must.Get(sql.Open("sqlite", "file:"+path))(t)
	defer db.Close()
	must.Get(db.ExecContext(t.Context(), "UPDATE events SET body = x''"))(t)

	due := must.Get(s.BodiesOf(t.Context(), 1, `{"id":"evt_1"}`))(t)
	if len(due) != 1 || due[0].ID != "dlv_2" {
		t.Errorf("the deliveries are %+v, want the ping only", due)
	}
}
