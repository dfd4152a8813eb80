package service

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ledgerd/ledgerd/internal/terminal"
)

// sqliteMagic is how every SQLite database begins that is not empty.
const sqliteMagic = "SQLite format 3\x00"

// checkDatabase reports why there can be no database at a path, which need not
// be there yet. What else is wrong with it, opening it tells.
func checkDatabase(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return checkFolder(path)
	case info.IsDir():
		return fmt.Errorf("the database %s is a folder: name a file in it, such as --database %s", path,
			terminal.QuoteShell(filepath.Join(path, "ledger.db")))
	case !info.Mode().IsRegular():
		return fmt.Errorf("the database %s is not an ordinary file: name another one with --database", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("the database cannot be read: %w", err)
	}
	defer file.Close()
	start := make([]byte, len(sqliteMagic))
	_, err = io.ReadFull(file, start)
	if err == io.EOF || string(start) == sqliteMagic {
		return nil
	}
	if err != nil && err != io.ErrUnexpectedEOF {
		return fmt.Errorf("the database cannot be read: %w", err)
	}
	return fmt.Errorf("%s is no database of ledgerd's: name another file with --database", path)
}

// checkFolder reports that the folder of a database is missing.
func checkFolder(path string) error {
	folder := filepath.Dir(path)
	info, err := os.Stat(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no folder %s for the database %s: make it first, or name another file with --database",
			folder, path)
	}
	if err == nil && !info.IsDir() {
		return fmt.Errorf("there can be no database %s, since %s is no folder: name another file with --database", path,
			folder)
	}
	return nil
}

// CheckExists returns an error if there is no database at the path. The error names
// flag as the way to use a server instead.
func CheckExists(path, flag string) error {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf(`there is no database at %s
Make one with 'ledgerd org create NAME' or 'ledgerd serve', name another one
with --database, or a server with %s`, path, flag)
	}
	return checkDatabase(path)
}
