package store

import (
	"path/filepath"
	"strings"
	"testing"
)

// Queries for deliveries use an index, so their cost does not depend on the size of the
// outbox.
func TestDeliveryQueriesUseIndexes(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()

	const (
		byID    = "PRIMARY KEY (webhook_id=? AND delivery_id<?)"
		byDue   = "COVERING INDEX outbox_due (webhook_id=? AND due_at>? AND due_at<?)"
		byEvent = "INDEX outbox_by_event (webhook_id=? AND event=?"
	)
	for _, test := range []struct {
		name  string
		query string
		index string
		sorts bool
	}{
		{"claim", claim, byDue, false},
		{"due webhooks", dueWebhooks, byDue, false},
		{"all statuses", anyDeliveries, byID, false},
		{"succeeded", succeededDeliveries, byID, false},
		{"failed", failedDeliveries, "COVERING INDEX outbox_failed (webhook_id=? AND delivery_id<?)", false},
		{"pending", pendingDeliveries, "COVERING INDEX outbox_due (webhook_id=? AND due_at>?)", true},
		{"of an event", eventDeliveries, byEvent, false},
		{"of a ping", pingDeliveries, byEvent, false},
		{"ended", endedDeliveries, "COVERING INDEX outbox_ended (webhook_id=? AND ended_at>? AND ended_at<?)", false},
		{"of a deleted webhook", allDeliveries, "PRIMARY KEY (webhook_id=?)", false},
		{"redeliver", redeliver, "PRIMARY KEY (webhook_id=? AND delivery_id=?)", false},
		{"failed attempt", settleFailure, "PRIMARY KEY (webhook_id=? AND delivery_id=?)", false},
		{"time of an event", eventTime, "INDEX sqlite_autoindex_events_1 (org_id=? AND seq=?)", false},
		{"replay", replayEvents, "INDEX sqlite_autoindex_events_1 (org_id=? AND seq>? AND seq<?)", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			plan := strings.Join(planOf(t, s, test.query), "\n")
			if !strings.Contains(plan, "USING "+test.index) {
				t.Errorf("plan is\n%s\nwant it to use %s", plan, test.index)
			}
			if sorts := strings.Contains(plan, "TEMP B-TREE"); sorts != test.sorts {
				t.Errorf("plan is\n%s\nit sorts: %v, want %v", plan, sorts, test.sorts)
			}
		})
	}

	for _, ids := range []string{anyDeliveries, failedDeliveries} {
		plan := strings.Join(planOf(t, s, deliveriesIn(ids)), "\n")
		if strings.Contains(plan, "SCAN") ||
			!strings.Contains(plan, "SEARCH o USING PRIMARY KEY (webhook_id=? AND delivery_id=?)") {
			t.Errorf("plan of a page of deliveries is\n%s", plan)
		}
	}
}

// planOf returns the steps of a query's plan.
func planOf(t *testing.T, s *Store, query string) []string {
	t.Helper()
	steps, err := read(t.Context(), s, byOrg(""), func(rd reader) ([]string, error) { return rd.Plan(query) })
	check(t, err)
	return steps
}
