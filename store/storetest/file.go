package storetest

import (
	"context"
	"testing"

	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/store"
)

// Provider is the identity provider of accounts in tests. See [Providers].
const Provider = "https://idp.example"

// Providers lets all orgs use the provider.
func Providers() member.Providers { return member.Providers{Provider: {member.AnyOrg}} }

// NewFile returns the path of a new database without orgs, in a temporary folder of the
// test. All such databases are copies of one file, because a copy takes a fraction of
// the time of the migrations, in particular with the race detector.
func NewFile(t testing.TB) string {
	t.Helper()
	return emptyFile(t)
}

var emptyFile = testenv.Template("ledger.db", func(path string) error {
	s, err := store.Open(context.Background(), path, store.Options{})
	if err != nil {
		return err
	}
	return s.Close()
})
