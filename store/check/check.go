// Package check checks a database file: whether it is damaged, and whether anything in it was
// changed since it was recorded. It writes nothing, and reads a database that a server uses in
// many short transactions, each with a snapshot.
//
// It decides nothing itself: hashes, signatures and states are computed by the functions that
// the server uses.
package check

import (
	"context"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/internal/parallel"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/check/derived"
	"github.com/ledgerd/ledgerd/store/check/report"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A Report is what a check has found.
type Report = report.Report

// A Problem is something in the database that contradicts the rest of it, or what is known about it from
// elsewhere.
type Problem = report.Problem

// Run checks a database file. The error means that it could not be checked.
func Run(ctx context.Context, path string, o Options) (Report, error) {
	db, err := store.OpenSource(ctx, path)
	if different, ok := errors.AsType[*sqldb.SchemaError](err); ok {
		return OfSchema(different), nil
	}
	if err != nil {
		return Report{}, err
	}
	c := newChecker(db, o)
	if err = c.keep(o.Seen); err == nil {
		err = c.run(ctx)
	}
	return c.Result(), errors.Join(err, db.Changed(), db.Close())
}

// OfSchema returns the report of a database with another schema than ledgerd creates. What is in such a
// database is not read.
func OfSchema(e *sqldb.SchemaError) Report {
	r := report.New()
	for _, difference := range e.Differences {
		r.Problemf("schema", "", "", "%s", difference)
	}
	r.Uncheckedf("the rows, because the schema is not that of ledgerd")
	return r.Result()
}

// run runs all checks. One that cannot read the file is a problem, and the others go on. The
// file itself is checked by one CPU, while the others check the events.
func (c *checker) run(ctx context.Context) error {
	part := func(name string, check func(context.Context) error) error {
		if err := c.Tolerate(ctx, name, check(ctx)); err != nil {
			return fmt.Errorf("check %s: %w", name, err)
		}
		return nil
	}
	if err := part("mapping", c.readMapping); err != nil {
		return err
	}
	overlaps := func(ctx context.Context) error { return derived.CheckOverlaps(ctx, c.Database) }
	if err := part("overlaps", overlaps); err != nil {
		return err
	}

	c.step("file", 0, 0)
	err := parallel.Do(
		func() error { return part("file", c.file) },
		func() error { return part("events", c.events) },
	)
	if err == nil {
		c.checkFound()
	}
	return err
}

// file checks the file itself.
func (c *checker) file(ctx context.Context) error {
	return c.Source.CheckFile(ctx, func(damage string) { c.Problemf("file", "", "", "%s", damage) })
}

// readMapping reads which attestations were mapped again by later rules than their own.
func (c *checker) readMapping(ctx context.Context) error {
	return c.Read(ctx, func(conn *sqldb.Conn) error {
		err := conn.Row("SELECT EXISTS (SELECT 1 FROM clock)").Scan(&c.mapping.isCorrected)
		if err != nil {
			return err
		}
		return conn.Row(`
SELECT coalesce(max(remapped_to), 0) + 1, coalesce(min(mapping_version), 0) = ? AND NOT EXISTS (
  SELECT 1 FROM orgs o JOIN backlog b ON b.org_id = o.id AND b.kind = 'map')
FROM repos`, attestation.MappingVersion).Scan(&c.mapping.below, &c.mapping.isDone)
	})
}
