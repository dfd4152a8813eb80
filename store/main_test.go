package store

import (
	"context"
	"testing"

	"github.com/ledgerd/ledgerd/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// NewFile is storetest.NewFile, which tests in this package cannot import.
func NewFile(t testing.TB) string {
	t.Helper()
	return emptyFile(t)
}

var emptyFile = testenv.Template("ledger.db", func(path string) error {
	s, err := Open(context.Background(), path, Options{})
	if err != nil {
		return err
	}
	return s.Close()
})
