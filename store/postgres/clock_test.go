package postgres_test

import (
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/pgtest"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
)

// A server whose clock is far behind the records of another one refuses to record once it has seen
// them. Servers have the clock of the database, so that happens only if it is replaced.
func TestAServerBehindTheRecordsOfAnother(t *testing.T) {
	t.Parallel()
	url := database(pgtest.Start(t, pgtest.Fast()...).NewDatabase(t))
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	behind := url.Open(t, store.Options{Now: func() time.Time { return now }})
	_, err := behind.CreateOrg(t.Context(), "acme")
	must.OK(t, err)
	ahead := url.Open(t, store.Options{Now: func() time.Time { return now.Add(3 * time.Hour) }})
	t.Cleanup(func() { must.OK(t, ahead.Close()); must.OK(t, behind.Close()) })

	change := func(s *store.Store) error {
		_, err := s.ChangeOrg(t.Context(), "acme", ledger.OrgChange{LogPublic: new(true)})
		return err
	}
	must.OK(t, change(ahead))
	must.OK(t, change(behind)) // sees it, and its ids go on
	if e, _ := change(behind).(*ledger.Error); e == nil || e.Code != ledger.CodeClockJumped {
		t.Errorf("a write returns %v, want code %s", e, ledger.CodeClockJumped)
	}
	now = now.Add(time.Hour)
	must.OK(t, change(behind))
}
