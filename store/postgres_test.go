package store_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/pgtest"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/postgres"
)

// lengths are parts of statements in which a parameter is compared with a length.
var lengths = []string{"substr(c.sha, 1, ?)", "chain.n < ?3", "length(checkpoint) <= ?"}

// testPostgreSQLAcceptsStatements checks that PostgreSQL accepts every statement, and takes none of
// its parameters for a number of 32 bits, in which no time and no row id fits.
func testPostgreSQLAcceptsStatements(t *testing.T, plans, opening map[string][]string) {
	t.Helper()
	url := pgtest.Start(t, pgtest.Fast()...).NewDatabase(t)
	s := must.Get(store.Open(t.Context(), url, store.Options{}))(t)
	must.OK(t, s.Close())
	c, err := pgx.Connect(t.Context(), url)
	must.OK(t, err)
	defer c.Close(t.Context())

	for _, statement := range store.Statements(plans) {
		if _, ok := opening[statement]; ok {
			continue
		}
		description, err := c.Prepare(t.Context(), "", postgres.SQL(statement))
		if err != nil {
			t.Errorf("%s\n%v", statement, err)
			continue
		}
		for i, oid := range description.ParamOIDs {
			isLength := func(part string) bool { return strings.Contains(statement, part) }
			if oid == pgtype.Int4OID && !slices.ContainsFunc(lengths, isLength) {
				t.Errorf("%s\nparameter %d has 32 bits", statement, i+1)
			}
		}
	}
}
