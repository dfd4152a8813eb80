package postgres

import (
	"compress/gzip"
	"database/sql"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/pgtest"
	"github.com/ledgerd/ledgerd/store/sqlite"
)

// before is the version of the schema of the release before, of which there is a file.
const before = 17

// enriched are statements that add what the migration changes to the file of the release before.
const enriched = `
UPDATE commits SET author_email = '12+eve@users.noreply.github.com' WHERE id = (SELECT min(id) FROM commits);
UPDATE commits SET writers = 'eve+tag@acme.example' WHERE id = (SELECT max(id) FROM commits);
INSERT INTO signer_names (org_id, name, signer_id)
SELECT s.org_id, n.name, s.signer_id
FROM (SELECT org_id, min(signer_id) AS signer_id FROM signer_names GROUP BY org_id) s JOIN (
  SELECT 'eve+work@acme.example' AS name UNION SELECT '123+eve@users.noreply.github.com'
  UNION SELECT 'old@users.noreply.github.com' UNION SELECT '7-ann@users.noreply.gitlab.com'
  UNION SELECT 'kim@noreply.codeberg.org' UNION SELECT 'kim@noreply.git.acme.example'
  UNION SELECT '+x@acme.example' UNION SELECT 'eve@acme.example' UNION SELECT 'noreply@github.com'
  UNION SELECT 'users.noreply.@acme.example' UNION SELECT '5+a+b@users.noreply.github.com'
) n;
INSERT INTO witnessed (origin, size, root, checkpoint, seq, digest, previous, at)
VALUES ('a', 1, zeroblob(32), 'a', 1, zeroblob(32), zeroblob(32), 1);
INSERT INTO witness_evidence (origin, kind, size, root, checkpoint, cosigned, at)
VALUES ('a', 'fork', 1, zeroblob(32), 'a', 'a', 1);
INSERT INTO clock (id, behind_since, put_right_at, ahead_until, pending) VALUES (1, 0, 5, 9, 0);
INSERT INTO predicates (id, org_id, name) SELECT 900, min(id), 'build:gh' FROM orgs;
CREATE TABLE builds AS SELECT * FROM attestations WHERE id = (SELECT min(id) FROM attestations);
UPDATE builds SET id = 901, attestation_id = 'att_901', predicate_id = 900, payload_digest = randomblob(32),
  slot = 'sha256:' || hex(zeroblob(32));
INSERT INTO attestations SELECT * FROM builds;
DROP TABLE builds;
INSERT INTO artifacts (org_id, digest, commit_id, identity_id, signer_id, attestation_id)
SELECT r.org_id, zeroblob(32), a.commit_id, a.identity_id, a.signer_id, a.id
FROM attestations a JOIN repos r ON r.id = a.repo_id WHERE a.id IN (SELECT min(id) FROM attestations);
`

// A ledger of the release before has the same rows after its upgrade on both engines.
func TestUpgradesAgreeOnBothEngines(t *testing.T) {
	t.Parallel()
	file := unpackBefore(t)
	from := openFile(t, file)
	_, err := from.Exec(enriched)
	must.OK(t, err)
	url := pgtest.Start(t, pgtest.Fast()...).NewDatabase(t)
	s, err := Connect(t.Context(), url)
	must.OK(t, err)
	defer s.Close()
	must.OK(t, s.Run("BEGIN"))
	must.OK(t, runScripts(s.Conn, 0, before))
	must.OK(t, s.Run("COMMIT"))

	c, err := pgx.Connect(t.Context(), url)
	must.OK(t, err)
	defer c.Close(t.Context())
	tables := tablesOf(t, c)
	for _, table := range tables {
		copyRows(t, from, c, table)
	}
	must.OK(t, from.Close())

	const reason = "schema version 17 is of an earlier release"
	if err := checkSchema(s.Conn); err == nil || !strings.Contains(err.Error(), reason) {
		t.Errorf("to read the ledger before its upgrade: got %v, want %q", err, reason)
	}
	must.OK(t, migrate(s.Conn, Options{}))
	db, err := sqlite.Open(t.Context(), file, sqlite.Options{NoCopy: true})
	must.OK(t, err)
	must.OK(t, db.Close())

	to := openFile(t, file)
	for _, table := range tablesOf(t, c) {
		onFile, onServer := rowsOfFile(t, to, table), rowsOfServer(t, c, table)
		if table.name == `"cursor_key"` {
			onFile, onServer = []string{fmt.Sprint(len(onFile))}, []string{fmt.Sprint(len(onServer))}
		}
		for _, row := range onFile {
			if !slices.Contains(onServer, row) {
				t.Errorf("%s: PostgreSQL lacks %s", table.name, row)
			}
		}
		for _, row := range onServer {
			if !slices.Contains(onFile, row) {
				t.Errorf("%s: SQLite lacks %s", table.name, row)
			}
		}
	}
}

// A release that waited while a newer one migrated the database does not use it.
func TestDatabasesThatANewerReleaseHasJustMigrated(t *testing.T) {
	t.Parallel()
	s, err := Connect(t.Context(), pgtest.Start(t, pgtest.Fast()...).NewDatabase(t))
	must.OK(t, err)
	defer s.Close()
	must.OK(t, s.Run("BEGIN"))
	must.OK(t, runScripts(s.Conn, 0, before))
	must.OK(t, s.Run("COMMIT"))

	err = migrate(s.Conn, Options{Migrating: func(int, int, string) {
		must.OK(t, s.Run("UPDATE ledger SET schema_version = 999"))
	}})
	if want := "schema version 999 is too new"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got error %v, want %q", err, want)
	}
}

// unpackBefore returns a new file with the ledger of the release before.
func unpackBefore(t *testing.T) (path string) {
	t.Helper()
	packed := must.Get(os.Open(fmt.Sprintf("../testdata/schemas/v%d.db.gz", before)))(t)
	defer packed.Close()
	unpacked := must.Get(gzip.NewReader(packed))(t)
	content := must.Get(io.ReadAll(unpacked))(t)
	path = filepath.Join(t.TempDir(), "ledger.db")
	must.OK(t, os.WriteFile(path, content, 0o600))
	return path
}

func openFile(t *testing.T, path string) *sql.DB {
	t.Helper()
	db := must.Get(sql.Open("sqlite", "file:"+path))(t)
	t.Cleanup(func() { db.Close() })
	return db
}

// A table has the columns that both engines have.
type table struct {
	name    string
	columns []string
}

func (t table) list() string { return strings.Join(t.columns, ", ") }

// tablesOf returns the tables of a database, without those that only servers have.
func tablesOf(t *testing.T, c *pgx.Conn) (list []table) {
	t.Helper()
	rows, err := c.Query(t.Context(), `
SELECT table_name, array_agg(column_name::text) FROM information_schema.columns
WHERE table_schema = current_schema() AND table_name <> 'ledger'
  AND NOT (table_name = 'orgs' AND column_name IN ('writes', 'stamp'))
GROUP BY table_name ORDER BY table_name`)
	must.OK(t, err)
	for rows.Next() {
		var next table
		must.OK(t, rows.Scan(&next.name, &next.columns))
		next.name = pgx.Identifier{next.name}.Sanitize()
		list = append(list, next)
	}
	must.OK(t, rows.Err())
	return list
}

// copyRows copies the rows of a table from a file to a server, in any order of tables.
func copyRows(t *testing.T, from *sql.DB, to *pgx.Conn, table table) {
	t.Helper()
	_, err := to.Exec(t.Context(), "SET session_replication_role = replica") // checks no references
	must.OK(t, err)
	var values []string
	for n := range table.columns {
		values = append(values, fmt.Sprintf("$%d", n+1))
	}
	insert := fmt.Sprintf("INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE VALUES (%s)", table.name, table.list(),
		strings.Join(values, ", "))
	for _, row := range readFile(t, from, table) {
		if _, err := to.Exec(t.Context(), insert, row...); err != nil {
			t.Fatalf("copy %v of %s: %v", row, table.name, err)
		}
	}
}

// readFile reads the rows of a table of a file.
func readFile(t *testing.T, db *sql.DB, table table) (list [][]any) {
	t.Helper()
	rows, err := db.Query(fmt.Sprintf("SELECT %s FROM %s", table.list(), table.name))
	must.OK(t, err)
	defer rows.Close()
	for rows.Next() {
		row := make([]any, len(table.columns))
		into := make([]any, len(row))
		for n := range row {
			into[n] = &row[n]
		}
		must.OK(t, rows.Scan(into...))
		for n, value := range row {
			if blob, isBlob := value.([]byte); isBlob && len(blob) == 0 {
				row[n] = []byte{} // which is not NULL
			}
		}
		list = append(list, row)
	}
	must.OK(t, rows.Err())
	return list
}

func rowsOfFile(t *testing.T, db *sql.DB, table table) (list []string) {
	t.Helper()
	for _, row := range readFile(t, db, table) {
		list = append(list, textOf(table, row))
	}
	return list
}

func rowsOfServer(t *testing.T, c *pgx.Conn, table table) (list []string) {
	t.Helper()
	rows, err := c.Query(t.Context(), fmt.Sprintf("SELECT %s FROM %s", table.list(), table.name))
	must.OK(t, err)
	for rows.Next() {
		row, err := rows.Values()
		must.OK(t, err)
		list = append(list, textOf(table, row))
	}
	must.OK(t, rows.Err())
	return list
}

// textOf returns the text of a row with the names of its columns.
func textOf(table table, row []any) string {
	var b strings.Builder
	for n, value := range row {
		if blob, isBlob := value.([]byte); isBlob {
			value = fmt.Sprintf("x'%x'", blob)
		}
		fmt.Fprintf(&b, "%s=%v ", table.columns[n], value)
	}
	return b.String()
}
