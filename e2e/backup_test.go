package e2e_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // the driver

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

// backups is how many backups are written under load.
const backups = 20

// Backups are written while 64 clients attest. Each passes the check, and has each event that was
// answered before it began. One of them is restored, and goes on as a ledger.
func TestBackupsUnderLoad(t *testing.T) {
	testenv.From(t, testenv.Full, "takes many seconds")
	t.Parallel()
	o := newOrg(t)
	o.start()

	load := o.attestAtOnce(64)
	dir := t.TempDir()
	backup := func(n int) string { return filepath.Join(dir, fmt.Sprintf("%d.db", n)) }
	before := make([]int, backups) // how many were answered before it began
	for n := range backups {
		before[n] = len(load.answered())
		o.ledgerd("backup", backup(n), "-q")
	}
	answered := load.stop()
	if t.Failed() || before[backups-1] < 100 {
		t.Fatalf("%d attestations were answered before the last backup", before[backups-1])
	}

	for n := range backups {
		copied := &org{t: t, database: backup(n)}
		if out := copied.ledgerd("check"); !strings.Contains(out, ".db: OK (") {
			t.Errorf("backup %d: %s", n, out)
		}
		wantEvents(t, backup(n), answered[:before[n]])
	}

	o.kill()
	o.database = filepath.Join(t.TempDir(), "restored.db")
	o.ledgerd("restore", backup(backups-1))
	o.start()
	if _, err := o.attest(); err != nil {
		t.Error(err)
	}
	if out := o.ledgerd("check"); !strings.Contains(out, ".db: OK (") {
		t.Error(out)
	}
}

// wantEvents fails the test if a database file lacks an event.
func wantEvents(t *testing.T, file string, ids []string) {
	t.Helper()
	has, missing := eventsIn(t, file), 0
	for _, id := range ids {
		if !has[id] {
			missing++
		}
	}
	if missing > 0 {
		t.Errorf("%s lacks %d of %d events", filepath.Base(file), missing, len(ids))
	}
}

// eventsIn returns the IDs of the events in a database file.
func eventsIn(t *testing.T, file string) map[string]bool {
	t.Helper()
	db := must.Get(sql.Open("sqlite", "file:"+file+"?mode=ro"))(t)
	defer db.Close()
	rows := must.Get(db.Query("SELECT event_id FROM events"))(t)
	defer rows.Close()
	ids := make(map[string]bool)
	for rows.Next() {
		var id string
		must.OK(t, rows.Scan(&id))
		ids[id] = true
	}
	must.OK(t, rows.Err())
	return ids
}
