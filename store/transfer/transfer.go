// Package transfer copies a ledger from a file of SQLite to a database of PostgreSQL, and back.
package transfer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/sqlite"
)

// A Copy copies a ledger to an empty database, row by row.
type Copy struct {
	// From and To are each the path of a SQLite file or the URL of a PostgreSQL database. At least
	// one of them is a URL. From is only read, in one transaction, and servers may use it. To must
	// be a file that does not exist, or a database without a ledger.
	From, To string
	// Progress, if not nil, is called with how many rows of a table are done.
	Progress func(step string, rows int64)
}

// A Done says what was copied.
type Done struct {
	From    string  `json:"from"` // without a password
	To      string  `json:"to"`
	Orgs    int64   `json:"orgs"`
	Events  int64   `json:"events"`
	Rows    int64   `json:"rows"` // of all tables
	Logs    int     `json:"logs"` // whose roots were compared
	Seconds float64 `json:"seconds"`
}

// Run copies the ledger, and compares the copy with the source: every row, and the roots of all
// transparency logs. If it fails, the file is not there, and the database has no ledger.
func (c Copy) Run(ctx context.Context) (done Done, err error) {
	begun := time.Now()
	if err := c.Check(); err != nil {
		return done, err
	}
	if !store.IsPostgres(c.To) {
		if err := sqlite.CheckFree(c.To); err != nil {
			return done, err
		}
	}
	r := &copying{progress: c.Progress}
	err = readSource(ctx, c.From, func(from source) error {
		r.from = from
		err := c.fill(ctx, func(to target) error {
			r.to = to
			return r.run(ctx)
		})
		if err != nil {
			return fmt.Errorf("copy to %s: %w", store.Redacted(c.To), err)
		}
		return nil
	})
	if err != nil {
		return done, err
	}

	done = Done{From: store.Redacted(c.From), To: store.Redacted(c.To), Logs: len(r.roots)}
	done.Orgs, done.Events = r.sums["orgs"].rows, r.sums["events"].rows
	for _, sum := range r.sums {
		done.Rows += sum.rows
	}
	done.Seconds = time.Since(begun).Seconds()
	return done, nil
}

// Check returns an error if From or To is not valid. It opens nothing.
func (c Copy) Check() error {
	for _, database := range []string{c.From, c.To} {
		scheme, _, isURL := strings.Cut(database, "://")
		switch {
		case database == "":
			return errors.New("a copy needs a source and a target")
		case isURL && !store.IsPostgres(database):
			return fmt.Errorf("%s://… is not the URL of a PostgreSQL database: write postgres://user@host/database", scheme)
		}
	}
	if !store.IsPostgres(c.From) && !store.IsPostgres(c.To) {
		return errors.New("both are files: 'ledgerd backup' copies a file to a file")
	}
	return nil
}

// fill runs fn with the target.
func (c Copy) fill(ctx context.Context, fn func(target) error) error {
	if store.IsPostgres(c.To) {
		return fillServer(ctx, c.To, fn)
	}
	return fillFile(ctx, c.To, fn)
}
