package webhooks_test

import (
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/sqlite"
	"github.com/ledgerd/ledgerd/store/storetest"
	"github.com/ledgerd/ledgerd/store/txn"
	"github.com/ledgerd/ledgerd/store/webhooks"
)

// Queries for deliveries use an index, so their cost does not depend on the size of the
// outbox.
func TestDeliveryQueriesUseIndexes(t *testing.T) {
	db := must.Get(sqlite.OpenReadOnly(t.Context(), storetest.NewFile(t)))(t)
	defer db.Close()

	const (
		byDue = "COVERING INDEX outbox_due (webhook_id=? AND due_at>? AND due_at<?)"
		byID  = "PRIMARY KEY (webhook_id=? AND delivery_id=?)"
	)
	want := map[string]string{
		"claim":                byDue,
		"due webhooks":         byDue,
		"ended":                "COVERING INDEX outbox_ended (webhook_id=? AND ended_at>? AND ended_at<?)",
		"of a deleted webhook": "PRIMARY KEY (webhook_id=?)",
		"redeliver":            byID,
		"failed attempt":       byID,
		"replay":               "INDEX sqlite_autoindex_events_1 (org_id=? AND seq>? AND seq<?)",
	}
	for name, query := range webhooks.Queries() {
		t.Run(name, func(t *testing.T) {
			must.OK(t, db.Read(t.Context(), txn.ByOrg(""), func(c *sqldb.Conn) error {
				steps, err := sqlite.Plan(c, query)
				plan := strings.Join(steps, "\n")
				if want[name] == "" || !strings.Contains(plan, "USING "+want[name]) {
					t.Errorf("plan is\n%s\nwant it to use %s", plan, want[name])
				}
				if strings.Contains(plan, "TEMP B-TREE") {
					t.Errorf("plan is\n%s\nit sorts", plan)
				}
				return err
			}))
		})
	}
}
