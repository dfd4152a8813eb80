package store

import (
	"context"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
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

// createAcme is storetest.CreateAcme.
func createAcme(t testing.TB, s *Store) {
	t.Helper()
	_, err := s.CreateOrg(t.Context(), "acme")
	must.OK(t, err)
	_, err = s.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: "api"}, "host")
	must.OK(t, err)
}
