package postgres_test

import (
	"context"
	"flag"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/pgtest"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger/identity/sigstore"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
	"github.com/ledgerd/ledgerd/store/storetest/conformance"
	"github.com/ledgerd/ledgerd/store/storetest/record"
)

// A database is the URL of a database on a PostgreSQL server.
type database string

func (u database) Name() string { return string(u) }

func (u database) Open(t testing.TB, o store.Options) *store.Store {
	t.Helper()
	o.ParseRoot = sigstore.ParseRoot
	return must.Get(store.Open(context.Background(), string(u), o))(t)
}

func (u database) Exec(t testing.TB, script string) {
	t.Helper()
	conn := must.Get(pgx.Connect(t.Context(), string(u)))(t)
	defer conn.Close(context.Background())
	must.Get(conn.Exec(t.Context(), script))(t)
}

// newDatabases starts a server, and returns what creates databases on it. They are copies of one, because
// the migrations take several times as long.
func newDatabases(t testing.TB, settings ...string) func(testing.TB) storetest.Located {
	newCopy := pgtest.Start(t, settings...).Copies(t, func(url string) {
		must.OK(t, database(url).Open(t, store.Options{}).Close())
	})
	return func(t testing.TB) storetest.Located { return database(newCopy(t)) }
}

// TestConformance runs the suite that SQLite passes, too, also with two stores on a database. Each case
// of the models takes a new database.
func TestConformance(t *testing.T) {
	t.Parallel()
	must.OK(t, flag.Set("rapid.checks", testenv.Pick("5", "5", "100")))
	conformance.RunReplicas(t, storetest.Checked(newDatabases(t, pgtest.Fast()...)))
}

func BenchmarkRecord(b *testing.B)           { benchmark(b, record.BenchmarkRecord) }
func BenchmarkRegisterInFlight(b *testing.B) { benchmark(b, record.BenchmarkRegisterInFlight) }
func BenchmarkMainlineMoves(b *testing.B)    { benchmark(b, record.BenchmarkMainlineMoves) }
func BenchmarkGateOfADelivery(b *testing.B)  { benchmark(b, record.BenchmarkGateOfADelivery) }

func benchmark(b *testing.B, run func(*testing.B, storetest.New)) {
	newDatabase := newDatabases(b)
	run(b, func(t testing.TB) storetest.Database { return newDatabase(t) })
}
