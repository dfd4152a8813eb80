package store

import (
	"path/filepath"
	"strings"
	"testing"
)

// Every page of a repo's attestations comes out of an index in its order: no
// query may read a whole table or sort. (Those of one commit are sorted.)
func TestPagesWalkAnIndex(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for variant := range 1 << 5 {
		is := func(bit int) bool { return variant>>bit&1 == 1 }
		q := attestationQuery{repo: repoRow{id: 1}, limit: 51, ascending: is(0)}
		if is(1) {
			q.predicates = &idSet{ids: []int64{1}}
		}
		if is(2) {
			q.signers = &idSet{ids: []int64{1}}
		}
		if is(3) {
			q.since = 1
		}
		if is(4) {
			q.position = []int64{1, 1}
		}
		query, args := q.sql()
		checkPlan(t, s, query, args...)
	}
	checkPlan(t, s, selectToken+"WHERE t.hash = ?", []byte{1})
	checkPlan(t, s, doneTips, 1, 1)
	checkPlan(t, s, oldTips, 1, 1, 1)
	checkPlan(t, s, pairColumns+withEarlier+"WHERE "+earlierThan+" AND"+isOpen, 1, 1, 1)
	checkPlan(t, s, pairColumns+withLater+"WHERE "+laterThan+" AND"+isOpen, 1, 1, 1)
	checkPlan(t, s, countColumns+withEarlier+"WHERE "+earlierThan+" AND"+isOpen, 1, 1, 1, 1, 1, 1)
	checkPlan(t, s, countColumns+withLater+"WHERE "+laterThan+" AND"+isOpen, 1, 1, 1, 1, 1, 1)
	checkPlan(t, s, newerTips, 1, 1)

	checkPlan(t, s, liveTips, 1)
	checkPlan(t, s, liveRecords, 1)
	checkPlan(t, s, newerRecords, 1, 1)
	checkPlan(t, s, selectUnseen, 1, 1, 1)
}

// What is asked of a webhook's deliveries reads few of them, however many there
// are: by an index that has them together.
func TestDeliveriesAreFoundByTheirIndex(t *testing.T) {
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
		args  []any
		index string
		sorts bool
	}{
		{"claim", claim, []any{1, 1, 1, 1}, byDue, false},
		{"due", dueWebhooks, []any{1}, byDue, false},
		{"all", anyDeliveries, []any{1, "dlv_~", 51}, byID, false},
		{"succeeded", succeededDeliveries, []any{1, "dlv_~", 51}, byID, false},
		{"failed", failedDeliveries, []any{1, "dlv_~", 51}, "COVERING INDEX outbox_failed (webhook_id=? AND delivery_id<?)", false},
		{"pending", pendingDeliveries, []any{1, "dlv_~", 51}, "COVERING INDEX outbox_due (webhook_id=? AND due_at>?)", true},
		{"of an event", eventDeliveries, []any{1, "dlv_~", 51, 1, ""}, byEvent, false},
		{"of a ping", pingDeliveries, []any{1, "dlv_~", 51, "evt_x", ""}, byEvent, false},
		{"ended", endedDeliveries, []any{1, 1, 500}, "COVERING INDEX outbox_ended (webhook_id=? AND ended_at>? AND ended_at<?)", false},
		{"of a deleted webhook", allDeliveries, []any{1, 500}, "PRIMARY KEY (webhook_id=?)", false},
		{"redelivered", redeliver, []any{1, 1, "dlv_x"}, "PRIMARY KEY (webhook_id=? AND delivery_id=?)", false},
		{"failed attempt", settleFailure, []any{1, "dlv_x", 1, 1, "failed", 1, 1}, "PRIMARY KEY (webhook_id=? AND delivery_id=?)", false},
		{"time of an event", eventTime, []any{1, 1}, "INDEX sqlite_autoindex_events_1 (org_id=? AND seq=?)", false},
		{"missed events", missedEvents, []any{1, 1, 1, 1}, "INDEX sqlite_autoindex_events_1 (org_id=? AND seq>? AND seq<?)", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			plan := strings.Join(planOf(t, s, test.query, test.args...), "\n")
			if !strings.Contains(plan, "USING "+test.index) {
				t.Errorf("the plan is\n%s\nwant it to use %s", plan, test.index)
			}
			if sorts := strings.Contains(plan, "TEMP B-TREE"); sorts != test.sorts {
				t.Errorf("the plan is\n%s\nit sorts: %v, want %v", plan, sorts, test.sorts)
			}
		})
	}
	for _, ids := range []string{anyDeliveries, failedDeliveries} {
		plan := strings.Join(planOf(t, s, deliveriesIn(ids), 1, "dlv_~", 51), "\n")
		if strings.Contains(plan, "SCAN") || !strings.Contains(plan, "SEARCH o USING PRIMARY KEY (webhook_id=? AND delivery_id=?)") {
			t.Errorf("a page of deliveries is read by\n%s", plan)
		}
	}
}

func checkPlan(t *testing.T, s *Store, query string, args ...any) {
	t.Helper()
	for _, step := range planOf(t, s, query, args...) {
		if strings.Contains(step, "SCAN") && !strings.Contains(step, "json_each") || strings.Contains(step, "TEMP B-TREE") {
			t.Errorf("%s: %s", query, step)
		}
	}
}

// planOf returns the steps in which SQLite would carry out a query.
func planOf(t *testing.T, s *Store, query string, _ ...any) []string {
	t.Helper()
	steps, err := read(t.Context(), s, func(rd reader) ([]string, error) { return rd.Plan(query) })
	check(t, err)
	return steps
}
