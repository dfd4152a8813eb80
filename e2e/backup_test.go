package e2e_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	_ "modernc.org/sqlite" // the driver
)

// backups is how many backups are written under load.
const backups = 20

// Backups are written while 64 clients attest. Each passes the check, and has each event that was
// answered before it began. One of them is restored, and goes on as a ledger.
func TestBackupsUnderLoad(t *testing.T) {
	t.Parallel()
	o := newOrg(t)
	o.start()

	var mu sync.Mutex
	var answered []string
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for range 64 {
		writers.Go(func() {
			for ctx.Err() == nil {
				record, err := o.attest()
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				answered = append(answered, record.Event)
				mu.Unlock()
			}
		})
	}

	dir := t.TempDir()
	backup := func(n int) string { return filepath.Join(dir, fmt.Sprintf("%d.db", n)) }
	before := make([]int, backups) // how many were answered before it began
	for n := range backups {
		mu.Lock()
		before[n] = len(answered)
		mu.Unlock()
		o.ledgerd("backup", backup(n), "-q")
	}
	stop()
	writers.Wait()
	if t.Failed() || before[backups-1] < 100 {
		t.Fatalf("%d attestations were answered before the last backup", before[backups-1])
	}

	for n := range backups {
		copied := &org{t: t, database: backup(n)}
		if out := copied.ledgerd("check"); !strings.Contains(out, ".db: OK (") {
			t.Errorf("backup %d: %s", n, out)
		}
		has := eventsIn(t, backup(n))
		for _, id := range answered[:before[n]] {
			if !has[id] {
				t.Errorf("backup %d lacks the event %s", n, id)
			}
		}
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

// eventsIn returns the IDs of the events in a database file.
func eventsIn(t *testing.T, file string) map[string]bool {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?mode=ro")
	check(t, err)
	defer db.Close()
	rows, err := db.Query("SELECT event_id FROM events")
	check(t, err)
	defer rows.Close()
	ids := make(map[string]bool)
	for rows.Next() {
		var id string
		check(t, rows.Scan(&id))
		ids[id] = true
	}
	check(t, rows.Err())
	return ids
}
