package sqlite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
)

// A link to a file that does not exist creates none, wherever it points to.
func TestDanglingLinksAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		suffix string // of the link, next to the database
		open   func(path string) error
	}{
		"a database": {"", func(path string) error {
			_, err := Open(t.Context(), path, Options{Hooks: noHooks})
			return err
		}},
		"a database that is served": {"", func(path string) error {
			_, err := Open(t.Context(), path, Options{Hooks: noHooks, Serve: true})
			return err
		}},
		"the lock of a server":    {".lock", func(path string) error { _, err := TakeLock(path); return err }},
		"the lock of a migration": {".migrating", func(path string) error { _, err := lockMigration(path); return err }},
	} {
		path := newPath(t)
		target := filepath.Join(t.TempDir(), "target")
		if err := os.Symlink(target, path+test.suffix); err != nil {
			t.Skip(err) // Windows permits it to some users only
		}
		err := test.open(path)
		if err == nil || !strings.Contains(err.Error(), "is a link to "+target+", which does not exist") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Lstat(target); err == nil {
			t.Errorf("%s: the target was created", name)
		}
	}
}

// A link to a database works, as before.
func TestLinkToADatabase(t *testing.T) {
	path := newPath(t)
	must.OK(t, open(t, path, noHooks).Close())
	link := newPath(t)
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err) // Windows permits it to some users only
	}
	must.OK(t, open(t, link, noHooks).Close())
}
