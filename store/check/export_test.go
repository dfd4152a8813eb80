package check

import (
	"context"

	"github.com/ledgerd/ledgerd/ledger/identity/sigstore"
	"github.com/ledgerd/ledgerd/store"
)

// RunOn checks a database that is open.
func RunOn(ctx context.Context, db store.Source) (Report, error) {
	c := newChecker(db, Options{ParseRoot: sigstore.ParseRoot})
	err := c.run(ctx)
	return c.Result(), err
}

// WithMaxKnown returns options with another limit of the commits whose facts are compared.
func (o Options) WithMaxKnown(n int) Options {
	o.maxKnown = n
	return o
}

// An Unread is what can be changed without being found, and why. See unread.
type Unread struct{ Tables, Columns, Why string }

// ListUnread returns what is not found, and what is not on PostgreSQL besides.
func ListUnread() (list, onPostgres []Unread) {
	for _, u := range unread {
		list = append(list, Unread{u.tables, u.columns, u.why})
	}
	for _, u := range unreadOnPostgres {
		onPostgres = append(onPostgres, Unread{u.tables, u.columns, u.why})
	}
	return list, onPostgres
}
