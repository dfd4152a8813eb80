package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/pgtest"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

const countOrgs = "SELECT count(*) FROM orgs"

// A query that was asked is answered early only if nothing changes in between: neither in the
// same write, nor before the next read on the connection.
func TestAskedQueriesSeeChanges(t *testing.T) {
	t.Parallel()
	db := openEngine(t, pgtest.Start(t, pgtest.Fast()...).NewDatabase(t))
	const into = "INSERT INTO orgs (name, created_at) VALUES "
	changes := map[string]func(c *sqldb.Conn, name string) error{
		"Exec": func(c *sqldb.Conn, name string) error {
			_, err := c.Exec(into+"(?, 0)", name)
			return err
		},
		"Insert": func(c *sqldb.Conn, name string) error {
			_, err := c.Insert(into+"(?, 0)", name)
			return err
		},
		"Queue": func(c *sqldb.Conn, name string) error { return c.Queue(into+"(?, 0)", name) },
		"Rows": func(c *sqldb.Conn, name string) error {
			rows := sqldb.NewRows(into, "", 2)
			rows.Add(name, int64(0))
			return rows.Flush(c)
		},
		"Run": func(c *sqldb.Conn, name string) error { return c.Run(into + "('" + name + "', 0)") },
	}

	want := int64(0)
	for name, change := range changes {
		for _, isSent := range []bool{false, true} {
			org := fmt.Sprintf("%s-%t", name, isSent)
			want++
			must.OK(t, db.Write(t.Context(), sqldb.Write{Do: func(c *sqldb.Conn) error {
				asked := c.Ask(countOrgs)
				if isSent {
					if err := c.Send(); err != nil {
						return err
					}
				}
				if err := change(c, org); err != nil {
					return err
				}
				return wantCount(t, asked.Row(), org, want)
			}}))
		}
	}

	read := func(fn func(*sqldb.Conn) error) {
		t.Helper()
		must.OK(t, db.ReadLoose(t.Context(), sqldb.Reader{Lane: sqldb.Long}, fn))
	}
	for _, isSent := range []bool{false, true} {
		asked := make(map[*sqldb.Conn]sqldb.Asked)
		for range 8 { // on every connection of the lane
			read(func(c *sqldb.Conn) error {
				asked[c] = c.Ask(countOrgs)
				if isSent {
					return c.Send()
				}
				return nil
			})
		}
		want++
		must.OK(t, insert(t.Context(), db, fmt.Sprintf("read-%t", isSent)))
		for range 8 {
			read(func(c *sqldb.Conn) error { return wantCount(t, asked[c].Row(), "the next read", want) })
		}
	}
}

func wantCount(t *testing.T, row sqldb.Scanner, after string, want int64) error {
	t.Helper()
	var n int64
	if err := row.Scan(&n); err != nil {
		return err
	}
	if n != want {
		t.Errorf("after %s there are %d orgs, want %d", after, n, want)
	}
	return nil
}

// The answers of several queries do not get mixed up, whatever the order in which they are taken, and take one
// round trip. One that is taken again, or after its failure, is run again.
func TestAskedQueriesTakeOneRoundTrip(t *testing.T) {
	t.Parallel()
	db := openEngine(t, pgtest.Start(t, pgtest.Fast()...).NewDatabase(t))
	must.OK(t, db.Write(t.Context(), sqldb.Write{Do: func(c *sqldb.Conn) error {
		var asked []sqldb.Asked
		for i := range int64(3) {
			asked = append(asked, c.Ask("SELECT ?::text, ?::bigint", "text", i))
		}
		each := c.AskIn("SELECT name FROM orgs WHERE name IN ", 1, []any{"a", "b"})

		before := db.Stats().RoundTrips
		take := func(i int64) {
			var text string
			var n int64
			if err := asked[i].Row().Scan(&text, &n); err != nil || text != "text" || n != i {
				t.Errorf("got %q and %d, %v, want %d", text, n, err, i)
			}
		}
		for _, i := range []int64{2, 0, 1} {
			take(i)
		}
		if err := each(func(sqldb.Scanner) error { return nil }); err != nil {
			return err
		}
		if n := db.Stats().RoundTrips - before; n != 1 {
			t.Errorf("four queries took %d round trips, want 1", n)
		}
		take(1)
		return nil
	}}))

	err := db.Write(t.Context(), sqldb.Write{Do: func(c *sqldb.Conn) error {
		c.Ask("SELECT 1 / ?::bigint", int64(0))
		return c.Row("SELECT 1").Scan(new(int64))
	}})
	if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "22012" {
		t.Errorf("a query that was asked divides by zero: %v, want that error", err)
	}
	must.OK(t, insert(t.Context(), db, "acme"))
}

// A read that ends while its queries are answered leaves a connection on which others can read.
func TestAskedQueriesThatAreCancelled(t *testing.T) {
	t.Parallel()
	db := openEngine(t, pgtest.Start(t, pgtest.Fast()...).NewDatabase(t))
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		err := db.ReadLoose(ctx, sqldb.Reader{Lane: sqldb.Long}, func(c *sqldb.Conn) error {
			asked := c.Ask("SELECT pg_sleep(5)::text")
			c.Ask(countOrgs)
			return asked.Row().Scan(new(string))
		})
		cancel()
		if err == nil {
			t.Error("a read that was cancelled has no error")
		}
		must.OK(t, db.ReadLoose(t.Context(), sqldb.Reader{Lane: sqldb.Long}, func(c *sqldb.Conn) error {
			return wantCount(t, c.Row(countOrgs), "a cancelled read", 0)
		}))
	}
}
