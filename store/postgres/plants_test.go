package postgres_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/pgtest"
	"github.com/ledgerd/ledgerd/store"
	dbcheck "github.com/ledgerd/ledgerd/store/check"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/transfer"
)

// What is planted in the schema of a ledger is named by all who open it, and nothing of it runs.
func TestWhatIsPlantedInASchemaIsRefused(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t, pgtest.Fast()...)
	newCopy := cluster.Copies(t, func(url string) { must.OK(t, database(url).Open(t, store.Options{}).Close()) })
	file := filepath.Join(t.TempDir(), "ledger.db")
	s, err := store.Open(t.Context(), file, store.Options{})
	must.OK(t, errors.Join(err, s.Close()))
	const function = "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN " +
		"UPDATE tokens SET permission = 4; RETURN NULL; END $$;"

	for _, p := range []struct{ name, plant, want string }{
		{"a trigger", function + "CREATE TRIGGER raise AFTER UPDATE OF name ON tokens EXECUTE FUNCTION f()",
			`trigger "raise" of "tokens" is unknown`},
		{"a foreign key that is not enforced", "ALTER TABLE tokens DISABLE TRIGGER ALL", `trigger "RI_ConstraintTrigger_`},
		{"an event trigger", "CREATE FUNCTION e() RETURNS event_trigger LANGUAGE plpgsql AS " +
			"$$ BEGIN RAISE 'it runs'; END $$; CREATE EVENT TRIGGER raise ON ddl_command_start EXECUTE FUNCTION e()",
			`event trigger "raise" is unknown`},
		{"a rule", "CREATE RULE quiet AS ON UPDATE TO tokens DO INSTEAD NOTHING", `rule "quiet" of "tokens" is unknown`},
		{"a policy", "ALTER TABLE tokens ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON tokens USING (true)",
			`policy "p" of "tokens" is unknown`},
		{"a view", "CREATE VIEW shown AS SELECT * FROM tokens", `view "shown" is unknown`},
		{"a view in place of a table", "ALTER TABLE sessions RENAME TO kept; CREATE VIEW sessions AS SELECT * FROM kept",
			`view "sessions" is unknown`},
		{"a materialized view", "CREATE MATERIALIZED VIEW shown AS SELECT 1", `materialized view "shown" is unknown`},
		{"a foreign table", "CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w; " +
			"CREATE FOREIGN TABLE other (id bigint) SERVER s", `foreign table "other" is unknown`},
		{"a table", "CREATE TABLE notes (text text)", `table "notes" is unknown`},
		{"a table that inherits", "CREATE SCHEMA x; CREATE TABLE x.more () INHERITS (tokens)",
			`inheriting table "x.more" of "tokens" is unknown`},
		{"a table that is inherited", "CREATE SCHEMA x; CREATE TABLE x.p (); ALTER TABLE tokens INHERIT x.p",
			`inherited table "x.p" of "tokens" is unknown`},
		{"a foreign key of another schema", "CREATE SCHEMA x; CREATE TABLE x.more (id bigint CONSTRAINT one REFERENCES " +
			"tokens ON DELETE CASCADE)", `foreign key "one" of "tokens" is unknown`},
		{"statistics of another schema", "CREATE SCHEMA x; CREATE STATISTICS x.some ON (lower(name)) FROM tokens",
			`statistics "some" of "tokens" is unknown`},
		{"a column", "ALTER TABLE orgs ADD COLUMN color text", `column "color" of "orgs" is unknown`},
		{"a generated column", "ALTER TABLE orgs ADD COLUMN n bigint GENERATED ALWAYS AS (id + 1) STORED",
			`column "n" of "orgs" is unknown`},
		{"a default", "ALTER TABLE tokens ALTER COLUMN permission SET DEFAULT 4",
			`column "permission" of "tokens" was changed`},
		{"another type", "ALTER TABLE orgs ALTER COLUMN name TYPE citext", `column "name" of "orgs" was changed`},
		{"another collation", `ALTER TABLE orgs ALTER COLUMN name TYPE text COLLATE "POSIX"`,
			`column "name" of "orgs" was changed`},
		{"a collation of another schema", `CREATE SCHEMA x; CREATE COLLATION x."C" FROM "POSIX"; ` +
			`ALTER TABLE orgs ALTER COLUMN name TYPE text COLLATE x."C"`, `column "name" of "orgs" was changed`},
		{"a value that may be missing", "ALTER TABLE tokens ALTER COLUMN hash DROP NOT NULL",
			`column "hash" of "tokens" was changed`},
		{"a constraint", "ALTER TABLE tokens ADD CHECK (permission > 0)", `constraint "tokens_permission_check" of "tokens"`},
		{"a constraint that is gone", "ALTER TABLE orgs DROP CONSTRAINT orgs_name_key",
			`index "orgs_name_key" of "orgs" is missing`},
		{"an index on an expression", "CREATE INDEX tokens_by_name ON tokens (lower(name))",
			`index "tokens_by_name" of "tokens" is unknown`},
		{"an index of other rows", "DROP INDEX webhooks_active; CREATE INDEX webhooks_active ON webhooks (id) " +
			"WHERE active = 0", `index "webhooks_active" of "webhooks" was changed`},
		{"a sequence", "ALTER SEQUENCE ids INCREMENT 1", `sequence "ids" was changed`},
		{"a table that a crash empties", "ALTER TABLE sessions SET UNLOGGED", `table "sessions" was changed`},
		{"a function that hides one of PostgreSQL",
			"CREATE FUNCTION lower(citext) RETURNS text LANGUAGE sql AS $$ SELECT '' $$", `function "lower" is unknown`},
		{"an operator", "CREATE FUNCTION same(citext, text) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$; " +
			"CREATE OPERATOR = (LEFTARG = citext, RIGHTARG = text, FUNCTION = same)", `operator "=" is unknown`},
		{"a cast", "CREATE TYPE t AS (n bigint); " +
			"CREATE FUNCTION to_n(t) RETURNS bigint LANGUAGE sql AS $$ SELECT 1::bigint $$; " +
			"CREATE CAST (t AS bigint) WITH FUNCTION to_n(t) AS IMPLICIT", `cast "t as bigint" is unknown`},
		{"a type", "CREATE DOMAIN positive AS bigint CHECK (VALUE > 0)", `type "positive" is unknown`},
	} {
		t.Run(p.name, func(t *testing.T) {
			url := newCopy(t)
			must.OK(t, cluster.Exec(t.Context(), url, p.plant))

			s, err := store.Open(t.Context(), url, store.Options{})
			if err == nil {
				must.OK(t, s.Close())
			}
			wantDifference(t, "Open", err, p.want)
			if p.name != "a trigger" {
				return // the others compare by the same function
			}
			_, err = transfer.Copy{From: url, To: filepath.Join(t.TempDir(), "copy.db")}.Run(t.Context())
			wantDifference(t, "copy from it", err, p.want)
			_, err = transfer.Copy{From: file, To: url}.Run(t.Context())
			wantDifference(t, "copy to it", err, p.want)
			report, err := dbcheck.Run(t.Context(), url, dbcheck.Options{})
			must.OK(t, err)
			if report.Found == 0 || !strings.Contains(report.Problems[0].String(), "schema: "+p.want) {
				t.Errorf("check has found %v, want %q", report.Problems, p.want)
			}
		})
	}
}

// What the owner of a ledger, who is no superuser, plants to run before the comparison does not run.
func TestWhatAnOwnerPlantsDoesNotRun(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t, pgtest.Fast()...)
	must.OK(t, cluster.Exec(t.Context(), cluster.AdminURL(), "CREATE ROLE led LOGIN"))
	const ran = "CREATE SCHEMA IF NOT EXISTS x; CREATE TABLE x.ran (); CREATE FUNCTION f() RETURNS bigint " +
		"LANGUAGE plpgsql AS $$ BEGIN RAISE 'it runs'; END $$;"
	const hides = "CREATE SCHEMA IF NOT EXISTS x; CREATE FUNCTION same(l oid, r regnamespace) RETURNS boolean LANGUAGE " +
		"plpgsql AS $$ BEGIN BEGIN ALTER OPERATOR public.= (oid, regnamespace) SET SCHEMA x; " +
		"ALTER FUNCTION public.same(oid, regnamespace) SET SCHEMA x; EXCEPTION WHEN others THEN NULL; END; " +
		"RETURN pg_catalog.oideq(l, r::oid); END $$; " +
		"CREATE OPERATOR = (LEFTARG = oid, RIGHTARG = regnamespace, FUNCTION = same);"

	for _, p := range []struct{ name, plant, want string }{
		{"an operator of the catalog that hides itself", hides, `operator "=" is unknown`},
		{"a function of the catalog that comes first in the path", "CREATE FUNCTION pg_is_in_recovery() RETURNS boolean " +
			"LANGUAGE plpgsql AS $$ BEGIN RAISE 'it runs'; END $$; ALTER ROLE led SET search_path = public, pg_catalog",
			`function "pg_is_in_recovery" is unknown`},
		{"a view in place of the version", ran + "ALTER TABLE ledger RENAME TO kept; " +
			"CREATE VIEW ledger AS SELECT id, f() AS schema_version FROM kept", `view "ledger" is unknown`},
		{"a policy of the version", ran + "ALTER TABLE ledger ENABLE ROW LEVEL SECURITY; " +
			"ALTER TABLE ledger FORCE ROW LEVEL SECURITY; " +
			"CREATE POLICY p ON ledger USING (f() = 1)", `policy "p" of "ledger" is unknown`},
		{"a table that the version inherits", ran + "CREATE TABLE x.more () INHERITS (ledger)",
			`inheriting table "x.more" of "ledger" is unknown`},
		{"a member of an extension", "ALTER EXTENSION citext ADD VIEW shown", `view "shown" is unknown`},
		{"a function of an extension", "ALTER EXTENSION citext ADD FUNCTION mine()", `function "mine" is unknown`},
	} {
		t.Run(p.name, func(t *testing.T) {
			url := cluster.NewDatabase(t)
			must.OK(t, cluster.Exec(t.Context(), url, "DROP EXTENSION citext; ALTER SCHEMA public OWNER TO led; DO $$ BEGIN "+
				"EXECUTE format('ALTER DATABASE %I OWNER TO led', current_database()); END $$"))
			url = strings.Replace(url, "ledgerd@", "led@", 1)
			must.OK(t, database(url).Open(t, store.Options{}).Close())
			if strings.HasPrefix(p.plant, "ALTER EXTENSION") {
				must.OK(t, cluster.Exec(t.Context(), url, "CREATE VIEW shown AS SELECT 1; "+
					"CREATE FUNCTION mine() RETURNS bigint LANGUAGE sql AS $$ SELECT 1 $$"))
			}
			must.OK(t, cluster.Exec(t.Context(), url, p.plant))
			t.Cleanup(func() { _ = cluster.Exec(t.Context(), cluster.AdminURL(), "ALTER ROLE led RESET search_path") })

			s, err := store.Open(t.Context(), url, store.Options{})
			if err == nil {
				must.OK(t, s.Close())
			}
			wantDifference(t, "Open", err, p.want)
			_, err = transfer.Copy{From: url, To: filepath.Join(t.TempDir(), "copy.db")}.Run(t.Context())
			wantDifference(t, "copy from it", err, p.want)
		})
	}
}

// A version that no release has had is named before anything is compared with it.
func TestVersionsOfNoReleaseAreRefused(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t, pgtest.Fast()...)
	url := cluster.NewDatabase(t)
	must.OK(t, database(url).Open(t, store.Options{}).Close())
	for _, c := range []struct{ version, want string }{
		{"-1", "schema version -1 is not valid"},
		{"0", "schema version 0 is not valid"},
		{"3", "schema version 3 is not valid"},
		{"9223372036854775807", "schema version 9223372036854775807 is too new"},
	} {
		must.OK(t, cluster.Exec(t.Context(), url, "UPDATE ledger SET schema_version = "+c.version))
		s, err := store.Open(t.Context(), url, store.Options{})
		if err == nil {
			must.OK(t, s.Close())
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("version %s: got error %v, want %q", c.version, err, c.want)
		}
	}
}

// An empty database has nothing that could become part of a ledger.
func TestWhatIsPlantedInAnEmptyDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t, pgtest.Fast()...)
	url := cluster.NewDatabase(t)
	must.OK(t, cluster.Exec(t.Context(), url,
		"CREATE FUNCTION lower(bigint) RETURNS text LANGUAGE sql AS $$ SELECT '' $$"))
	s, err := store.Open(t.Context(), url, store.Options{})
	if err == nil {
		must.OK(t, s.Close())
	}
	wantDifference(t, "Open", err, `function "lower" is unknown`)
}

// wantDifference checks that an error names a difference of a schema.
func wantDifference(t *testing.T, what string, err error, want string) {
	t.Helper()
	if _, ok := errors.AsType[*sqldb.SchemaError](err); !ok || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got error %v, want %q", what, err, want)
	}
}
