package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
)

// sqliteMagic is the beginning of every SQLite database file that is not empty.
const sqliteMagic = "SQLite format 3\x00"

// CheckDatabase returns an error if the path cannot be a database: its folder is
// missing, or the file is of another kind. The file need not exist. Opening the
// database may still fail. A URL is not checked.
func CheckDatabase(path string) error {
	if store.IsPostgres(path) {
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return checkFolder(path)
	case info.IsDir():
		return fmt.Errorf("database %s is a folder (name a file in it, such as --database %s)", path,
			terminal.QuoteShell(filepath.Join(path, "ledger.db")))
	case !info.Mode().IsRegular():
		return fmt.Errorf("database %s is not a regular file (name another one with --database)", path)
	}

	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("cannot read the database: %w", err)
	}
	defer file.Close()

	start := make([]byte, len(sqliteMagic))
	_, err = io.ReadFull(file, start)
	if err == io.EOF || string(start) == sqliteMagic || isUnfinished(path, start) {
		return nil
	}
	if err != nil && err != io.ErrUnexpectedEOF {
		return fmt.Errorf("cannot read the database: %w", err)
	}
	return fmt.Errorf("%s is not a ledgerd database (name another file with --database)", path)
}

// journalMagic is the beginning of a rollback journal of SQLite.
const journalMagic = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"

// isUnfinished reports whether a database that begins with start was being created when
// the power failed: the file has got its size, but not its content. SQLite then rolls it
// back to an empty file by its journal.
func isUnfinished(path string, start []byte) bool {
	journal, err := os.Open(path + "-journal")
	if err != nil {
		return false
	}
	defer journal.Close()

	magic := make([]byte, len(journalMagic))
	_, err = io.ReadFull(journal, magic)
	return err == nil && string(magic) == journalMagic && string(start) == strings.Repeat("\x00", len(start))
}

// checkFolder returns an error if the folder of a database does not exist or is not a
// folder.
func checkFolder(path string) error {
	folder := filepath.Dir(path)
	info, err := os.Stat(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("folder %s of database %s does not exist (create it, or name another file with --database)",
			folder, path)
	}
	if err == nil && !info.IsDir() {
		return fmt.Errorf("invalid database %s: %s is not a folder (name another file with --database)", path, folder)
	}
	return nil
}

// CheckExists returns an error if there is no database at the path. The error suggests
// flag for using a server instead. If the database has left its write-ahead log,
// opening it returns a better error.
func CheckExists(path, flag string) error {
	if store.IsPostgres(path) {
		return nil
	}
	_, err := os.Stat(path)
	_, logErr := os.Stat(path + "-wal")
	if errors.Is(err, fs.ErrNotExist) && errors.Is(logErr, fs.ErrNotExist) {
		return fmt.Errorf(`database %s not found: create it with 'ledgerd org create NAME' or
'ledgerd serve', name another file with --database, or a server with %s`, path, flag)
	}
	return CheckDatabase(path)
}

// An AcceptedClock says that the system clock, which shows At, is right although the database has
// records of Newest.
type AcceptedClock struct {
	At     ledger.Time `json:"accepted_at"`
	Newest ledger.Time `json:"newest_record"`
}

// AcceptClock accepts the system clock for the database of the settings. Servers that use the database
// follow it within seconds.
func AcceptClock(ctx context.Context, s config.Settings) (a AcceptedClock, err error) {
	if err := CheckExists(string(s.Database), "--server"); err != nil {
		return a, err
	}
	o := store.Options{NoCopy: s.NoCopy, ExternalCheckpoints: s.ExternalCheckpoints}
	db, err := store.Open(ctx, string(s.Database), o)
	if err != nil {
		return a, err
	}
	a.At, a.Newest, err = db.AcceptClock(ctx)
	return a, errors.Join(err, db.Close())
}
