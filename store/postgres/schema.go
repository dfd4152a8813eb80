package postgres

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// digest is that of the schema of a new database. A database with another one is compared with a new one, which takes
// longer. 'go test ./store/postgres -run SchemaDigest -update' writes it.
//
//go:embed schema.sha256
var digest string

// checkObjects returns the version of a schema, and a *sqldb.SchemaError if it has other objects than ledgerd makes in
// this version. It does not compare the schema of a newer release. It writes nothing.
func checkObjects(c *sqldb.Conn) (version int, err error) {
	version, got, err := inspectAlone(c)
	if err != nil {
		return 0, err
	}
	_, latest, err := scripts()
	if err != nil || version > latest || version == latest && got.Digest() == strings.TrimSpace(digest) {
		return version, err
	}
	want, err := schemaOf(c, version, latest)
	if err != nil {
		return 0, fmt.Errorf("compare the schema with the one that ledgerd creates: %w (the role needs TEMPORARY on the "+
			"database)", err)
	}
	return version, got.Compare(want)
}

// inspectAlone inspects a schema in a transaction that only reads.
func inspectAlone(c *sqldb.Conn) (version int, s sqldb.Schema, err error) {
	if err := c.Run("BEGIN READ ONLY"); err != nil {
		return 0, nil, fmt.Errorf("begin to read the schema: %w", err)
	}
	defer func() { err = errors.Join(err, c.Run("ROLLBACK")) }()
	return inspect(c)
}

// schemaOf returns the schema of a version: of the latest that of a new database, and of others what the migrations
// make. It makes temporary tables, in a transaction that it rolls back.
func schemaOf(c *sqldb.Conn, version, latest int) (s sqldb.Schema, err error) {
	if version == 0 {
		return nil, nil // the schema of temporary tables exists when there is one
	}
	if err := c.Run("BEGIN"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Run("ROLLBACK")) }()
	if err := setPath(c, catalogPath); err != nil {
		return nil, err
	}
	citext, err := citextSchema(c)
	if err != nil {
		return nil, err
	}

	path := "pg_temp, pg_catalog, " + citext
	if err := setPath(c, path); err != nil {
		return nil, err
	}
	if version == latest {
		err = create(c, latest)
	} else {
		err = runScripts(c, 0, version)
	}
	if err != nil {
		return nil, err
	}
	if err := setPath(c, catalogPath); err != nil {
		return nil, err
	}
	var oid uint32
	if err := c.Row("SELECT pg_my_temp_schema()").Scan(&oid); err != nil {
		return nil, err
	}
	return readObjects(c, oid, path)
}
