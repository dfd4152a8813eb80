package sqlite

import (
	"flag"
	"path/filepath"
	"testing"
)

var backupOf = flag.String("of", "", "the database `file` that BenchmarkBackup copies, instead of one of 100 MB")

// How long a backup takes that nobody writes next to.
func BenchmarkBackup(b *testing.B) {
	path := *backupOf
	if path == "" {
		path = filepath.Join(b.TempDir(), "ledger.db")
		db, err := Open(b.Context(), path, Options{Hooks: noHooks})
		if err != nil {
			b.Fatal(err)
		}
		addOrgs(b, db, 0, 500, 100_000)
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}

	for b.Loop() {
		size, err := Backup{From: path, To: filepath.Join(b.TempDir(), "copy.db")}.Run(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(size)
	}
}
