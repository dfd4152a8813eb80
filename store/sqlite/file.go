package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// readerPragmas has busy_timeout first, because the others may wait for another process.
var readerPragmas = []string{"busy_timeout(10000)", "query_only(1)", "temp_store(memory)", "cache_size(-4096)"}

// writerPragmas returns the pragmas of the connections that write.
func writerPragmas(o Options) []string {
	checkpoint := "wal_autocheckpoint(8000)" // 32 MB; normally the checkpointer copies the log long before that
	if o.ExternalCheckpoints {
		checkpoint = "wal_autocheckpoint(0)"
	}
	return []string{
		"busy_timeout(10000)", "synchronous(full)", "foreign_keys(1)", "journal_size_limit(67108864)",
		"temp_store(memory)", "cache_size(-16384)", checkpoint,
	}
}

func openFile(path string, pragmas []string) (*sql.DB, error) {
	return openFileAs(path, pragmas, url.Values{})
}

// openFileAs is like openFile, with options of SQLite's file names (sqlite.org/uri.html).
func openFileAs(path string, pragmas []string, options url.Values) (*sql.DB, error) {
	uri, err := fileURI(path, pragmas, options)
	if err != nil {
		return nil, err
	}
	return openHardened(uri)
}

// fileURI returns the URI of a file for the driver.
func fileURI(path string, pragmas []string, options url.Values) (string, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	absolute = filepath.ToSlash(absolute)
	if !strings.HasPrefix(absolute, "/") {
		absolute = "/" + absolute // C:/ledger.db
	}
	options["_pragma"] = pragmas
	uri := url.URL{Scheme: "file", Path: absolute, RawQuery: options.Encode()}
	return uri.String(), nil
}

// createPrivate creates the file with mode 0600 if it does not exist. SQLite
// creates the -wal and -shm files with the same mode. An existing file is not opened:
// closing it again would release the locks that SQLite has on it in this process.
func createPrivate(path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) { // a link, or another process was first
		return checkLink(path)
	}
	if err != nil {
		return err
	}
	return file.Close()
}

// checkLink returns an error if the path is a link to a file that does not exist. To open it could create
// that file, wherever it is. SQLite itself does not follow links for its -wal and -shm files.
func checkLink(path string) error {
	if target, err := os.Readlink(path); err == nil {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s is a link to %s, which does not exist (remove the link, or name the file itself)", path,
				target)
		}
	}
	return nil
}

// applicationID identifies a database file of ledgerd: "ldgd" in ASCII.
const applicationID = 0x6c646764

func schemaVersion(c *sqldb.Conn) (int, error) {
	var version int
	if err := c.Row("PRAGMA user_version").Scan(&version); err != nil {
		return 0, fmt.Errorf("read schema version: %w", err)
	}
	if version < 0 {
		return 0, fmt.Errorf("schema version %d is not valid: no release has created it (use a backup of your own)", version)
	}
	return version, nil
}
