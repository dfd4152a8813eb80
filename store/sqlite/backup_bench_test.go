package sqlite

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
)

var backupOf = flag.String("of", "", "the database `file` that BenchmarkBackup copies, instead of one of 100 MB")

// How long a backup takes that nobody writes next to.
func BenchmarkBackup(b *testing.B) {
	path := *backupOf
	if path == "" {
		path = filepath.Join(b.TempDir(), "ledger.db")
		db, err := Open(b.Context(), path, Options{Hooks: noHooks})
		must.OK(b, err)
		addOrgs(b, db, 0, 500, 100_000)
		must.OK(b, db.Close())
	}

	for b.Loop() {
		size, err := Backup{From: path, To: filepath.Join(b.TempDir(), "copy.db")}.Run(b.Context())
		must.OK(b, err)
		b.SetBytes(size)
	}
}
