package doctor_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/doctor"
	"github.com/ledgerd/ledgerd/internal/pgtest"
	"github.com/ledgerd/ledgerd/store"
)

func TestDatabaseOnAServer(t *testing.T) {
	cluster := pgtest.Start(t)
	s := config.Default()
	s.Listen, s.Log.KeyDir = "127.0.0.1:0", t.TempDir()+"/keys"
	s.Database = config.Database(cluster.NewDatabase(t))
	expect := func(level doctor.Level, part string) {
		t.Helper()
		findings := doctor.Examine(t.Context(), s, time.Now())
		if !slices.ContainsFunc(findings, func(f doctor.Finding) bool {
			return f.Check == "database" && f.Level == level && strings.Contains(f.Text, part)
		}) {
			t.Errorf("got %+v, want a finding with %q", findings, part)
		}
	}

	expect(doctor.OK, "is empty: serve creates the tables")
	db, err := store.Open(t.Context(), string(s.Database), store.Options{})
	check(t, errors.Join(err, db.Close()))
	expect(doctor.OK, "is reached")

	check(t, cluster.Exec(t.Context(), string(s.Database), "UPDATE ledger SET schema_version = 999"))
	expect(doctor.Problem, "too new")
	s.Database = config.Database(strings.Replace(cluster.AdminURL(), "/postgres?", "/missing?", 1))
	expect(doctor.Problem, `database "missing" does not exist`)
}
