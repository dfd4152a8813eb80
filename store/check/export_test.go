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
	return c.result(), err
}

// WithMaxKnown returns options with another limit of the commits whose facts are compared.
func (o Options) WithMaxKnown(n int) Options {
	o.maxKnown = n
	return o
}
