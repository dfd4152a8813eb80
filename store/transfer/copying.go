package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

const (
	// maxRows and maxBytes limit the rows that are in memory, and written at once. One row may be
	// larger.
	maxRows  = 10_000
	maxBytes = 4 << 20
	// reportRows is the number of rows between two reports of the progress.
	reportRows = 1000
)

// A copying copies the rows of a source to a target.
type copying struct {
	from     source
	to       target
	progress func(step string, rows int64)
	// roots of the source's logs, and sums of its tables by their names.
	roots []store.LogRoot
	sums  map[string]*sum
}

// run copies all rows, and compares the target with the source.
func (c *copying) run(ctx context.Context) (err error) {
	if c.from.identity != "" && c.from.identity == c.to.identity() {
		return errors.New("the source and the target are the same database")
	}
	if err := sameTables(c.from.tables, c.to.tables()); err != nil {
		return err
	}
	err = c.to.change(ctx, func(conn *sqldb.Conn) error { return makeEmpty(conn, c.to.tables()) })
	if err != nil {
		return err
	}
	if c.roots, err = store.LogRoots(c.from.Conn); err != nil {
		return fmt.Errorf("read the transparency logs of the source: %w", err)
	}

	c.sums = make(map[string]*sum)
	for _, t := range c.to.tables() {
		if err := c.copyTable(ctx, t); err != nil {
			return fmt.Errorf("copy table %s: %w", t.name, err)
		}
	}
	if err := c.from.unchanged(); err != nil {
		return err
	}
	return c.to.read(ctx, c.compare)
}

// copyTable copies the rows of a table, some at a time.
func (c *copying) copyTable(ctx context.Context, t table) error {
	sum := newSum()
	var rows [][]any
	size := 0

	err := eachRow(c.from.Conn, t, func(row []any) error {
		rows, size = append(rows, row), size+sizeOf(row)
		sum.add(row)
		c.report("copying "+t.name, sum.rows)
		if len(rows) < maxRows && size < maxBytes {
			return nil
		}
		err := c.to.write(ctx, t, rows)
		rows, size = rows[:0], 0
		return err
	})
	if err != nil {
		return err
	}
	c.sums[t.name] = sum
	if len(rows) == 0 {
		return nil
	}
	return c.to.write(ctx, t, rows)
}

// report reports the progress.
func (c *copying) report(step string, rows int64) {
	if c.progress != nil && rows%reportRows == 0 {
		c.progress(step, rows)
	}
}

// compare returns an error if the target differs from what was read of the source: in the number
// or the contents of the rows of a table, or in the root of a transparency log.
func (c *copying) compare(conn *sqldb.Conn) error {
	for _, t := range c.to.tables() {
		want, got := c.sums[t.name], newSum()
		err := eachRow(conn, t, func(row []any) error {
			got.add(row)
			c.report("comparing "+t.name, got.rows)
			return nil
		})
		switch {
		case err != nil:
			return fmt.Errorf("compare table %s: %w", t.name, err)
		case got.rows != want.rows:
			return fmt.Errorf("the copy differs: table %s has %d rows, but the source has %d", t.name, got.rows, want.rows)
		case !got.equals(want):
			return fmt.Errorf("the copy differs: table %s has other values than the source", t.name)
		}
	}

	roots, err := store.LogRoots(conn)
	if err != nil {
		return fmt.Errorf("read the transparency logs of the target: %w", err)
	}
	return compareRoots(c.roots, roots)
}

// compareRoots returns an error if the logs of two databases differ.
func compareRoots(from, to []store.LogRoot) error {
	for i, want := range from {
		if i >= len(to) || to[i] != want {
			return fmt.Errorf("the copy differs: the transparency log of %s in epoch %d has another root than in the source",
				want.Org, want.Epoch)
		}
	}
	if !slices.Equal(from, to) {
		return fmt.Errorf("the copy differs: it has %d transparency logs, but the source has %d", len(to), len(from))
	}
	return nil
}
