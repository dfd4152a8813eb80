package postgres

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// objectsQuery lists the objects in a schema, whose oid is its argument, with their definitions, and what
// may run as part of statements about them: casts and event triggers of the database, and what objects of
// other schemas add to its tables. It leaves out the objects of extensions, if they belong to a superuser,
// and what settings of storage an administrator has chosen. Where it can, it reads the columns of the
// catalog, since the texts that the server composes may differ between its releases.
const objectsQuery = `
WITH members AS (
  SELECT d.classid, d.objid FROM pg_depend d WHERE d.deptype = 'e'
), superusers AS (
  SELECT r.oid FROM pg_roles r WHERE r.rolsuper
), ours AS (
  SELECT c.oid, c.relname, c.relkind, c.relpersistence, c.relrowsecurity, c.relforcerowsecurity
  FROM pg_class c
  WHERE c.relnamespace = %[1]d AND NOT (c.relowner IN (SELECT oid FROM superusers)
    AND EXISTS (SELECT 1 FROM members m WHERE m.classid = 'pg_class'::regclass AND m.objid = c.oid))
), others AS (
  SELECT 'function' AS kind, p.proname AS name, p.oid, 'pg_proc'::regclass AS class, p.proowner AS owner
  FROM pg_proc p WHERE p.pronamespace = %[1]d
  UNION ALL SELECT 'operator', o.oprname, o.oid, 'pg_operator'::regclass, o.oprowner FROM pg_operator o
  WHERE o.oprnamespace = %[1]d
  UNION ALL SELECT 'operator class', o.opcname, o.oid, 'pg_opclass'::regclass, o.opcowner FROM pg_opclass o
  WHERE o.opcnamespace = %[1]d
  UNION ALL SELECT 'collation', l.collname, l.oid, 'pg_collation'::regclass, l.collowner FROM pg_collation l
  WHERE l.collnamespace = %[1]d
  UNION ALL SELECT 'conversion', v.conname, v.oid, 'pg_conversion'::regclass, v.conowner FROM pg_conversion v
  WHERE v.connamespace = %[1]d
  UNION ALL SELECT 'type', t.typname, t.oid, 'pg_type'::regclass, t.typowner FROM pg_type t
  WHERE t.typnamespace = %[1]d AND t.typrelid = 0 AND t.typcategory <> 'A'
  UNION ALL SELECT 'cast', format_type(c.castsource, NULL) || ' as ' || format_type(c.casttarget, NULL), c.oid,
    'pg_cast'::regclass, coalesce(p.proowner, (SELECT min(oid) FROM superusers))
  FROM pg_cast c LEFT JOIN pg_proc p ON p.oid = c.castfunc WHERE c.oid >= 16384
  UNION ALL SELECT 'event trigger', e.evtname, e.oid, 'pg_event_trigger'::regclass, e.evtowner
  FROM pg_event_trigger e WHERE e.evtenabled <> 'D'
)
SELECT CASE relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' WHEN 'v' THEN 'view'
    WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table' WHEN 'S' THEN 'sequence'
    WHEN 'c' THEN 'type' ELSE 'relation' END,
  relname, '', concat_ws(' ', CASE relpersistence WHEN 't' THEN 'p' ELSE relpersistence END, relrowsecurity,
    relforcerowsecurity, s.seqtypid::regtype, s.seqstart, s.seqincrement, s.seqmin, s.seqmax, s.seqcycle)
FROM ours LEFT JOIN pg_sequence s ON s.seqrelid = ours.oid WHERE relkind NOT IN ('i', 'I')
UNION ALL
SELECT 'column', a.attname, o.relname, concat_ws(' ', format_type(a.atttypid, a.atttypmod),
  CASE l.collnamespace WHEN 'pg_catalog'::regnamespace THEN l.collname::text ELSE l.oid::regcollation::text END,
  a.attnotnull, 'identity', a.attidentity, 'generated', a.attgenerated, 'default', pg_get_expr(d.adbin, d.adrelid))
FROM ours o JOIN pg_attribute a ON a.attrelid = o.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  LEFT JOIN pg_collation l ON l.oid = a.attcollation
WHERE o.relkind IN ('r', 'p')
UNION ALL
SELECT 'constraint', c.conname, coalesce(o.relname, ''), pg_get_constraintdef(c.oid)
FROM pg_constraint c LEFT JOIN ours o ON o.oid = c.conrelid
WHERE c.connamespace = %[1]d AND c.contype <> 'n'
UNION ALL
SELECT 'foreign key', c.conname, o.relname, c.conrelid::regclass::text
FROM pg_constraint c JOIN ours o ON o.oid = c.confrelid
WHERE NOT EXISTS (SELECT 1 FROM ours f WHERE f.oid = c.conrelid)
UNION ALL
SELECT 'index', i.relname, o.relname, concat_ws(' ', x.indisvalid, x.indisready,
  replace(replace(pg_get_indexdef(i.oid), ' ON pg_temp.', ' ON '),
    ' ON ' || (SELECT quote_ident(n.nspname) FROM pg_namespace n WHERE n.oid = %[1]d) || '.', ' ON '))
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
SELECT 'inherited table', h.inhparent::regclass::text, o.relname, ''
FROM pg_inherits h JOIN ours o ON o.oid = h.inhrelid
WHERE o.relkind = 'r'
UNION ALL
SELECT 'statistics', s.stxname, o.relname, '' FROM pg_statistic_ext s JOIN ours o ON o.oid = s.stxrelid
UNION ALL
SELECT x.kind, x.name, '', '' FROM others x
WHERE NOT (x.owner IN (SELECT oid FROM superusers)
  AND EXISTS (SELECT 1 FROM members m WHERE m.classid = x.class AND m.objid = x.oid))`

// isMade reports whether migrations make objects of a kind. What else is in a schema is refused before
// anything is done with its tables, because it could run.
func isMade(o sqldb.Object) bool {
	switch o.Kind {
	case "table", "sequence", "column", "constraint", "index":
		return true
	}
	return false
}

// catalogPath is the search_path with which names mean what they mean to PostgreSQL, whatever is planted
// in the schema of a ledger: it has functions and operators, too.
const catalogPath = "pg_catalog, pg_temp"

// setPath sets the search_path until the end of the transaction.
func setPath(c *sqldb.Conn, path string) error {
	if _, err := c.Exec("SELECT pg_catalog.set_config('search_path', ?, true)", path); err != nil {
		return fmt.Errorf("set search_path: %w", err)
	}
	return nil
}

// readObjects reads the objects of a schema, in a transaction whose search_path is catalogPath. With this
// path the query is read, and with the given one the server composes texts: it sets that one.
func readObjects(c *sqldb.Conn, schema uint32, path string) (sqldb.Schema, error) {
	if err := c.Run("DECLARE objects NO SCROLL CURSOR FOR" + fmt.Sprintf(objectsQuery, schema)); err != nil {
		return nil, fmt.Errorf("query the schema: %w", err)
	}
	if err := setPath(c, path); err != nil {
		return nil, err
	}

	s := make(sqldb.Schema)
	err := c.Each(func(row sqldb.Scanner) error {
		var o sqldb.Object
		var definition string
		if err := row.Scan(&o.Kind, &o.Name, &o.Of, &definition); err != nil {
			return err
		}
		s.Add(o, definition)
		return nil
	}, "FETCH ALL FROM objects")
	if err == nil {
		err = c.Run("CLOSE objects")
	}
	if err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	return s, nil
}

// inspect reads the version and the objects of the schema of a ledger, in a transaction, when no process
// migrates it. The version is 0 if there are no tables. It returns an error if there are tables of another
// program, or a *sqldb.SchemaError if there is what no migration makes. Until then it reads only the
// catalog, so that nothing of the schema runs.
func inspect(c *sqldb.Conn) (version int, s sqldb.Schema, err error) {
	var path, schema string
	err = c.Row("SELECT pg_catalog.current_setting('search_path'), coalesce(pg_catalog.current_schema(), '')").
		Scan(&path, &schema)
	if err != nil {
		return 0, nil, fmt.Errorf("read search_path: %w", err)
	}
	if schema == "" {
		return 0, nil, errors.New("search_path names no schema that exists")
	}
	if err := setPath(c, catalogPath); err != nil {
		return 0, nil, err
	}
	if _, err := c.Exec("SELECT pg_advisory_xact_lock_shared(?)", int64(migrationLock)); err != nil {
		return 0, nil, fmt.Errorf("wait for the migration of another process: %w", err)
	}

	var oid uint32
	if err := c.Row("SELECT oid FROM pg_namespace WHERE nspname = ?", schema).Scan(&oid); err != nil {
		return 0, nil, fmt.Errorf("find the schema: %w", err)
	}
	citext, err := citextSchema(c)
	if err != nil {
		return 0, nil, err
	}
	quoted := pgx.Identifier{schema}.Sanitize()
	if s, err = readObjects(c, oid, "pg_catalog, "+quoted+", "+citext); err != nil {
		return 0, nil, err
	}
	if version, err = schemaVersion(c, quoted, s); err != nil {
		return 0, nil, err
	}
	return version, s, setPath(c, path)
}

// citextSchema returns the quoted name of the schema with the extension citext. Without it, that is
// pg_catalog.
func citextSchema(c *sqldb.Conn) (quoted string, err error) {
	err = c.Row(`SELECT coalesce((SELECT quote_ident(n.nspname) FROM pg_extension e
  JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'citext'), 'pg_catalog')`).Scan(&quoted)
	if err != nil {
		return "", fmt.Errorf("find the extension citext: %w", err)
	}
	return quoted, nil
}

// schemaVersion returns the version of a schema, or 0 if it has no tables. It reads the table with the
// version only if that is the one that the migrations make, so that nothing runs.
func schemaVersion(c *sqldb.Conn, quoted string, s sqldb.Schema) (version int, err error) {
	ledger := sqldb.Object{Kind: "table", Name: "ledger"}
	column := sqldb.Object{Kind: "column", Name: "schema_version", Of: ledger.Name}
	tables, hasLedger, planted, marks := 0, false, make(sqldb.Schema), make(sqldb.Schema)
	for o, definition := range s {
		if isTable(o) {
			tables++
			hasLedger = hasLedger || o.Name == ledger.Name
		}
		if !isMade(o) {
			planted[o] = definition
		}
		if o == ledger || o == column {
			marks[o] = definition
		}
	}

	switch _, isTable := s[ledger]; {
	case tables > 0 && !hasLedger, isTable && s[column] == "":
		return 0, errors.New("not a database of ledgerd: another program has created tables in it (create an empty database)")
	case len(planted) > 0:
		return 0, planted.Compare(nil)
	case tables == 0:
		return 0, nil
	}
	err = marks.Compare(sqldb.Schema{ledger: "p f f\n", column: "bigint t identity  generated  default\n"})
	if err != nil {
		return 0, err
	}
	if err := c.Row("SELECT schema_version FROM " + quoted + ".ledger").Scan(&version); err != nil {
		return 0, fmt.Errorf("read the schema version: %w", err)
	}
	return version, checkVersion(version)
}

// isTable reports whether an object has rows.
func isTable(o sqldb.Object) bool {
	switch o.Kind {
	case "table", "partitioned table", "view", "materialized view":
		return true
	}
	return false
}

// checkVersion returns an error if no release has had a version of the schema.
func checkVersion(version int) error {
	files, latest, err := scripts()
	if err != nil || version > latest {
		return err
	}
	if !slices.ContainsFunc(files, func(file string) bool { return versionOf(file) == version }) {
		return fmt.Errorf("schema version %d is not valid: no release has created it (use a backup of your own)", version)
	}
	return nil
}
