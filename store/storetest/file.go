package storetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/ledgerd/ledgerd/store"
)

// emptyFile returns the content of a database without orgs.
var emptyFile = sync.OnceValues(func() (content []byte, err error) {
	dir, err := os.MkdirTemp("", "ledgerd-empty-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "ledger.db")
	s, err := store.Open(context.Background(), path, store.Options{})
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// NewFile returns the path of a new database without orgs, in a temporary folder of the
// test. All such databases are copies of one file, because a copy takes a fraction of
// the time of the migrations, in particular with the race detector.
func NewFile(t testing.TB) string {
	t.Helper()
	content, err := emptyFile()
	check(t, err)
	path := filepath.Join(t.TempDir(), "ledger.db")
	check(t, os.WriteFile(path, content, 0o600))
	return path
}
