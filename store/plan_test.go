package store

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
)

// Every page of attestations comes out of an index in its order: no query may
// read a whole table or sort.
func TestPagesWalkAnIndex(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for variant := range 1 << 6 {
		is := func(bit int) bool { return variant>>bit&1 == 1 }
		q := attestationQuery{repo: repoRow{id: 1}, limit: 51, ascending: is(0)}
		if is(1) {
			q.predicates = idSet{1}
		}
		if is(2) {
			q.signers = idSet{1}
		}
		if is(3) {
			q.commit = 1
		}
		if is(4) {
			q.since = 1
		}
		if is(5) {
			q.position = []int64{1, 1}
		}
		query, args := q.sql()
		checkPlan(t, s, query, args...)
	}
	several := attestationQuery{repo: repoRow{id: 1}, commit: 1, predicates: idSet{1, 2}, signers: idSet{1, 2}, limit: 51}
	query, args := several.sql()
	checkPlan(t, s, query, args...)
	checkPlan(t, s, "SELECT seq, body FROM events WHERE org_id = ? AND seq > ? ORDER BY seq LIMIT ?", 1, 1, 51)
	checkPlan(t, s, selectCommit+"WHERE repo_id = ? AND id < ? ORDER BY id DESC LIMIT ?", 1, 1, 51)
	checkPlan(t, s, selectCommit+"WHERE repo_id = ? AND id < ? AND state = ? ORDER BY id DESC LIMIT ?", 1, 1, 1, 51)
	checkPlan(t, s, selectCommit+"WHERE repo_id = ? AND id < ? AND branch = ? AND branch <> '' ORDER BY id DESC LIMIT ?", 1, 1, "main", 51)
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
		{"time of an event", eventTime, []any{1, 1}, "INDEX sqlite_autoindex_events_2 (org_id=? AND seq=?)", false},
		{"missed events", missedEvents, []any{1, 1, 1, 1}, "INDEX sqlite_autoindex_events_2 (org_id=? AND seq>? AND seq<?)", false},
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
func planOf(t *testing.T, s *Store, query string, args ...any) (steps []string) {
	t.Helper()
	err := s.read(t.Context(), func(c *conn) error {
		return c.each(func(row scanner) error {
			var id, parent, unused int
			var step string
			err := row.Scan(&id, &parent, &unused, &step)
			steps = append(steps, step)
			return err
		}, "EXPLAIN QUERY PLAN "+query, args...)
	})
	if err != nil {
		t.Error(err)
	}
	return steps
}

func TestANewerSchemaIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.writer.conn.execOnce("PRAGMA user_version = 9999"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err = Open(t.Context(), path, Options{}); err == nil || !strings.Contains(err.Error(), "newer release") {
		t.Fatalf("got %v, want an error that names a newer release", err)
	}
}

func TestAnotherProgramsDatabaseIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "other.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE TABLE orgs (name TEXT)"); err != nil {
		t.Fatal(err)
	}
	if _, err = Open(t.Context(), path, Options{}); err == nil || !strings.Contains(err.Error(), "another program") {
		t.Fatalf("got %v, want an error that tells of another program", err)
	}
}

func TestAWriteThatPanicsTakesBackOnlyItself(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.write(t.Context(), func(t *tx) error {
		if _, err := t.exec("INSERT INTO orgs (name, created_at) VALUES ('lost', 1)"); err != nil {
			return err
		}
		panic("a fault")
	})
	if err == nil || !strings.Contains(err.Error(), "a fault") {
		t.Fatalf("got %v, want the panic's message", err)
	}
	if _, err := s.CreateOrg(t.Context(), "acme"); err != nil {
		t.Fatalf("the next write fails: %v", err)
	}
	if _, err := s.Org(t.Context(), "lost"); err == nil {
		t.Fatal("what the panicking write did is there")
	}
}

// A full disk makes SQLite take back the whole transaction by itself.
func TestAFullDiskIsStorageUnavailable(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	limit := func(pages int) {
		if err := s.writer.conn.execOnce(fmt.Sprintf("PRAGMA max_page_count = %d", pages)); err != nil {
			t.Fatal(err)
		}
	}
	limit(1) // SQLite takes what the file has already
	full := 0
	for i := 0; full == 0 && i < 10_000; i++ {
		_, err := s.CreateOrg(t.Context(), fmt.Sprintf("org-%d", i))
		if e, ok := err.(*ledger.Error); ok && e.Code == ledger.CodeStorageUnavailable {
			full = i
		} else if err != nil {
			t.Fatalf("org %d: %v, want code %s", i, err, ledger.CodeStorageUnavailable)
		}
	}
	if full == 0 {
		t.Fatal("the disk never became full")
	}
	if _, err := s.Org(t.Context(), "org-0"); err != nil {
		t.Errorf("reading does not go on: %v", err)
	}
	limit(1 << 30)
	if _, err := s.CreateOrg(t.Context(), fmt.Sprintf("org-%d", full)); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

func TestTheFilesAreTheOwnersAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("file modes mean nothing there")
	}
	path := filepath.Join(t.TempDir(), "ledger.db")
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %o, want 600", info.Name(), mode)
		}
	}
}
