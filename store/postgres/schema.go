package postgres

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// digest is that of the schema that the migrations make. A database with another one is compared with
// what they make, which takes longer. 'go test ./store/postgres -run SchemaDigest -update' writes it.
//
//go:embed migrations/schema.sha256
var digest string

// objectsQuery lists the objects in the schema of a ledger with their definitions, and the casts and event
// triggers of the database, which may run as part of its statements. It leaves out the objects of
// extensions, and what settings of storage an administrator has chosen. Where it can, it reads the
// columns of the catalog, since the texts that the server composes may differ between its releases.
const objectsQuery = `
WITH ours AS (
  SELECT c.oid, c.relname, c.relkind, c.relpersistence, c.relrowsecurity, c.relforcerowsecurity
  FROM pg_class c
  WHERE c.relnamespace = current_schema()::regnamespace AND NOT EXISTS (SELECT 1 FROM pg_depend d
    WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
), others AS (
  SELECT 'function' AS kind, p.proname AS name, p.oid, 'pg_proc'::regclass AS class FROM pg_proc p
  WHERE p.pronamespace = current_schema()::regnamespace
  UNION ALL SELECT 'operator', o.oprname, o.oid, 'pg_operator'::regclass FROM pg_operator o
  WHERE o.oprnamespace = current_schema()::regnamespace
  UNION ALL SELECT 'operator class', o.opcname, o.oid, 'pg_opclass'::regclass FROM pg_opclass o
  WHERE o.opcnamespace = current_schema()::regnamespace
  UNION ALL SELECT 'collation', l.collname, l.oid, 'pg_collation'::regclass FROM pg_collation l
  WHERE l.collnamespace = current_schema()::regnamespace
  UNION ALL SELECT 'conversion', v.conname, v.oid, 'pg_conversion'::regclass FROM pg_conversion v
  WHERE v.connamespace = current_schema()::regnamespace
  UNION ALL SELECT 'type', t.typname, t.oid, 'pg_type'::regclass FROM pg_type t
  WHERE t.typnamespace = current_schema()::regnamespace AND t.typrelid = 0 AND t.typcategory <> 'A'
  UNION ALL SELECT 'cast', format_type(c.castsource, NULL) || ' as ' || format_type(c.casttarget, NULL), c.oid,
    'pg_cast'::regclass FROM pg_cast c WHERE c.oid >= 16384
  UNION ALL SELECT 'event trigger', e.evtname, e.oid, 'pg_event_trigger'::regclass FROM pg_event_trigger e
  WHERE e.evtenabled <> 'D'
)
SELECT CASE relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' WHEN 'v' THEN 'view'
    WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table' WHEN 'S' THEN 'sequence'
    WHEN 'c' THEN 'type' ELSE 'relation' END,
  relname, '', concat_ws(' ', CASE relpersistence WHEN 't' THEN 'p' ELSE relpersistence END, relrowsecurity,
    relforcerowsecurity, s.seqtypid::regtype, s.seqstart, s.seqincrement, s.seqmin, s.seqmax, s.seqcycle)
FROM ours LEFT JOIN pg_sequence s ON s.seqrelid = ours.oid WHERE relkind NOT IN ('i', 'I')
UNION ALL
SELECT 'column', a.attname, o.relname, concat_ws(' ', format_type(a.atttypid, a.atttypmod), l.collname, a.attnotnull,
  'identity', a.attidentity, 'generated', a.attgenerated, 'default', pg_get_expr(d.adbin, d.adrelid))
FROM ours o JOIN pg_attribute a ON a.attrelid = o.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  LEFT JOIN pg_collation l ON l.oid = a.attcollation
WHERE o.relkind IN ('r', 'p')
UNION ALL
SELECT 'constraint', c.conname, coalesce(o.relname, ''), pg_get_constraintdef(c.oid)
FROM pg_constraint c LEFT JOIN ours o ON o.oid = c.conrelid
WHERE c.connamespace = current_schema()::regnamespace AND c.contype <> 'n'
UNION ALL
SELECT 'index', i.relname, o.relname, concat_ws(' ', x.indisvalid, x.indisready,
  replace(replace(pg_get_indexdef(i.oid), ' ON pg_temp.', ' ON '),
    ' ON ' || quote_ident(current_schema()) || '.', ' ON '))
FROM ours i JOIN pg_index x ON x.indexrelid = i.oid JOIN ours o ON o.oid = x.indrelid
UNION ALL
SELECT 'trigger', t.tgname, o.relname, t.tgenabled::text FROM pg_trigger t JOIN ours o ON o.oid = t.tgrelid
WHERE NOT t.tgisinternal OR t.tgenabled <> 'O'
UNION ALL
SELECT 'rule', r.rulename, o.relname, '' FROM pg_rewrite r JOIN ours o ON o.oid = r.ev_class
WHERE r.rulename <> '_RETURN' OR o.relkind NOT IN ('v', 'm')
UNION ALL
SELECT 'policy', p.polname, o.relname, '' FROM pg_policy p JOIN ours o ON o.oid = p.polrelid
UNION ALL
SELECT 'inheriting table', h.inhrelid::regclass::text, o.relname, ''
FROM pg_inherits h JOIN ours o ON o.oid = h.inhparent
WHERE o.relkind = 'r'
UNION ALL
SELECT x.kind, x.name, '', '' FROM others x
WHERE NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = x.class AND d.objid = x.oid AND d.deptype = 'e')`

// isWide reports whether an object is one of the database rather than of the schema. The migrations make
// none of these, and they run when tables are created to compare with.
func isWide(o sqldb.Object) bool { return o.Kind == "event trigger" || o.Kind == "cast" }

// readSchema reads the objects of a schema.
func readSchema(c *sqldb.Conn) (sqldb.Schema, error) {
	s := make(sqldb.Schema)
	err := c.Each(func(row sqldb.Scanner) error {
		var o sqldb.Object
		var definition string
		if err := row.Scan(&o.Kind, &o.Name, &o.Of, &definition); err != nil {
			return err
		}
		s.Add(o, definition)
		return nil
	}, objectsQuery)
	if err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	return s, nil
}

// checkObjects returns a *sqldb.SchemaError if the schema has other objects than the migrations up to
// its version make. It writes nothing, and no process can migrate the database while it compares.
func checkObjects(c *sqldb.Conn) (err error) {
	if err := c.Run("BEGIN"); err != nil {
		return fmt.Errorf("begin to read the schema: %w", err)
	}
	defer func() { err = errors.Join(err, c.Run("ROLLBACK")) }()
	if _, err := c.Exec("SELECT pg_advisory_xact_lock_shared(?)", int64(migrationLock)); err != nil {
		return fmt.Errorf("wait for the migration of another process: %w", err)
	}
	version, err := schemaVersion(c)
	if err != nil {
		return err
	}
	got, err := readSchema(c)
	if err != nil {
		return err
	}

	_, latest, err := scripts()
	if err != nil || version == latest && got.Digest() == strings.TrimSpace(digest) {
		return err
	}
	wide := maps.Clone(got)
	maps.DeleteFunc(wide, func(o sqldb.Object, _ string) bool { return !isWide(o) })
	if err := wide.Compare(nil); err != nil {
		return err
	}
	want, err := migrated(c, version)
	if err != nil {
		return fmt.Errorf("compare the schema with that of ledgerd's migrations: %w (the role needs TEMPORARY on the "+
			"database)", err)
	}
	return got.Compare(want)
}

// migrated returns the schema that the migrations up to a version make. It makes temporary tables, in
// a transaction that the caller rolls back.
func migrated(c *sqldb.Conn, version int) (sqldb.Schema, error) {
	files, _, err := scripts()
	if err != nil || version < versionOf(files[0]) {
		return nil, err // the schema of temporary tables exists when there is one
	}
	_, err = c.Exec("SELECT set_config('search_path', 'pg_temp, ' || current_setting('search_path'), true)")
	if err != nil {
		return nil, err
	}
	if err := runScripts(c, 0, version); err != nil {
		return nil, err
	}
	return readSchema(c)
}
