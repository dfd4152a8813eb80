package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A rescued copy never overwrites an older one, and there is a limit to their number.
func TestFaultRescueKeepsOlderCopies(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not delete open files")
	}
	path := newPath(t)
	copyOf := func(i int) string { return fmt.Sprintf("%s.rescued-%d", path, i) }
	for i := range maxRescued - 1 {
		must.OK(t, os.WriteFile(copyOf(i+1), []byte("older"), 0o600))
	}

	for _, want := range []string{copyOf(maxRescued), "100 copies already"} {
		db := openWith(t, path, Options{Hooks: noHooks})
		must.OK(t, add(t.Context(), db, want))
		must.OK(t, os.Remove(path))
		if err := db.Close(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Close: got %v, want an error that contains %q", err, want)
		}
		for _, suffix := range []string{"-wal", "-shm"} {
			_ = os.Remove(path + suffix)
		}
	}

	if got, want := thingsIn(t, copyOf(maxRescued)), []string{copyOf(maxRescued)}; !slices.Equal(got, want) {
		t.Errorf("things in the last copy: got %q, want %q", got, want)
	}
	for i := range maxRescued - 1 {
		if data, err := os.ReadFile(copyOf(i + 1)); string(data) != "older" {
			t.Errorf("copy %d was overwritten: %d bytes, %v", i+1, len(data), err)
		}
	}
}

// A copy of damaged data is not passed off as a good one.
func TestFaultDamagedCopy(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not delete open files")
	}
	path := newPath(t)
	db := openWith(t, path, Options{Hooks: noHooks})
	must.OK(t, db.Write(t.Context(), single(func(c *sqldb.Conn) error {
		return c.Run("CREATE TABLE odd (n INTEGER CHECK (n > 0)); PRAGMA ignore_check_constraints = ON; " +
			"INSERT INTO odd VALUES (-1)")
	})))
	must.OK(t, os.Remove(path))
	if err := db.Close(); err == nil || !strings.Contains(err.Error(), "damaged copy") {
		t.Errorf("Close: got %v, want an error that reports the damaged copy", err)
	}
	want := []string{path + ".rescued-1.damaged"} // the only data that is left
	if files, _ := filepath.Glob(path + ".*"); !slices.Equal(files, want) {
		t.Errorf("files: got %q, want %q", files, want)
	}
}

// Only the temporary files of copies that were interrupted long ago are deleted.
func TestFaultInterruptedCopies(t *testing.T) {
	path := newPath(t)
	name := path + ".v1"
	want := []string{name, name + ".1.tmp", name + ".2.txt", path + ".v2.3.tmp"}
	for file, age := range map[string]time.Duration{
		want[0]: 2 * staleAfter, want[1]: staleAfter / 2, want[2]: 2 * staleAfter, want[3]: 2 * staleAfter,
		name + ".4.tmp": 2 * staleAfter,
	} {
		must.OK(t, os.WriteFile(file, nil, 0o600))
		changed := time.Now().Add(-age)
		must.OK(t, os.Chtimes(file, changed, changed))
	}

	must.OK(t, removeStale(name))
	if got, _ := filepath.Glob(path + "*"); !slices.Equal(got, want) {
		t.Errorf("files: got %q, want %q", got, want)
	}
}
