package store

import (
	"bytes"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

func openEmpty(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.Context(), NewFile(t), Options{})
	must.OK(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// openWithRepo opens a new store with the repo acme/api.
func openWithRepo(t *testing.T) *Store {
	t.Helper()
	s := openEmpty(t)
	createAcme(t, s)
	return s
}

func TestPanicRollsBackOnlyItsWrite(t *testing.T) {
	s := openEmpty(t)
	err := s.db.Change(t.Context(), "", func(t *txn.Tx) error {
		if _, err := t.Exec("INSERT INTO orgs (name, created_at) VALUES ('lost', 1)"); err != nil {
			return err
		}
		panic("a fault")
	})
	if err == nil || !strings.Contains(err.Error(), "a fault") {
		t.Fatalf("got %v, want the panic's message", err)
	}
	if _, err := s.CreateOrg(t.Context(), "acme"); err != nil {
		t.Fatalf("next write: %v", err)
	}
	if _, err := s.Org(t.Context(), "lost"); err == nil {
		t.Fatal("the panicking write was not rolled back")
	}
}

// On a full disk, SQLite itself rolls back the whole transaction.
func TestFullDisk(t *testing.T) {
	s := openEmpty(t)
	limit := func(pages int) {
		must.OK(t, s.db.Write(t.Context(), sqldb.Write{Do: func(c *sqldb.Conn) error {
			return c.Run(fmt.Sprintf("PRAGMA max_page_count = %d", pages))
		}}))
	}

	limit(1) // SQLite raises it to the current size of the file
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
		t.Fatal("no write failed with a full disk")
	}
	if _, err := s.Org(t.Context(), "org-0"); err != nil {
		t.Errorf("read with a full disk: %v", err)
	}

	limit(1 << 30)
	if _, err := s.CreateOrg(t.Context(), fmt.Sprintf("org-%d", full)); err != nil {
		t.Errorf("write with space again: %v", err)
	}
}

func TestTidyLogsErrors(t *testing.T) {
	var log bytes.Buffer
	options := Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), options)
	must.OK(t, err)
	must.OK(t, s.Close())
	s.TidyOnce(t.Context(), 0)
	for _, want := range []string{
		"pruning the delivery log failed", "pruning tips failed", "pruning sessions failed",
		"pruning sign-ins failed", "pruning overlaps failed",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("log is %q, want it to contain %q", log.String(), want)
		}
	}
}
