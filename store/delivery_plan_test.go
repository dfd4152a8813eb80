package store

import (
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Queries for deliveries use an index, so their cost does not depend on the size of the
// outbox.
func TestDeliveryQueriesUseIndexes(t *testing.T) {
	s, err := Open(t.Context(), NewFile(t), Options{})
	must.OK(t, err)
	defer s.Close()

	const (
		byDue = "COVERING INDEX outbox_due (webhook_id=? AND due_at>? AND due_at<?)"
	)
	for _, test := range []struct {
		name  string
		query string
		index string
	}{
		{"claim", claim, byDue},
		{"due webhooks", dueWebhooks, byDue},
		{"ended", endedDeliveries, "COVERING INDEX outbox_ended (webhook_id=? AND ended_at>? AND ended_at<?)"},
		{"of a deleted webhook", allDeliveries, "PRIMARY KEY (webhook_id=?)"},
		{"redeliver", redeliver, "PRIMARY KEY (webhook_id=? AND delivery_id=?)"},
		{"failed attempt", settleFailure, "PRIMARY KEY (webhook_id=? AND delivery_id=?)"},
		{"time of an event", events.EventTime, "INDEX sqlite_autoindex_events_1 (org_id=? AND seq=?)"},
		{"replay", replayEvents, "INDEX sqlite_autoindex_events_1 (org_id=? AND seq>? AND seq<?)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			plan := strings.Join(planOf(t, s, test.query), "\n")
			if !strings.Contains(plan, "USING "+test.index) {
				t.Errorf("plan is\n%s\nwant it to use %s", plan, test.index)
			}
			if strings.Contains(plan, "TEMP B-TREE") {
				t.Errorf("plan is\n%s\nit sorts", plan)
			}
		})
	}
}

// planOf returns the steps of a query's plan.
func planOf(t *testing.T, s *Store, query string) []string {
	t.Helper()
	steps, err := read(t.Context(), s, txn.ByOrg(""), func(rd reader) ([]string, error) { return rd.Plan(query) })
	must.OK(t, err)
	return steps
}
