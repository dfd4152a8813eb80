package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A guard guards the COMMITs of a connection. A COMMIT that waits for a synchronous standby is already on
// the disk of the primary. If the wait is canceled, the server shows it to others, and confirms it with a
// warning, although a failover loses it.
type guard struct {
	committing atomic.Bool
	warning    *pgconn.Notice // since the COMMIT was sent
}

// errNotCanceled is the error of requests to cancel a COMMIT.
var errNotCanceled = errors.New("a COMMIT is not canceled")

// configure lets the driver neither cancel a COMMIT nor ignore its warning.
func (g *guard) configure(config *pgx.ConnConfig) {
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if g.committing.Load() { // to cancel, the driver connects again
			return nil, errNotCanceled
		}
		return dial(ctx, network, address)
	}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if g.committing.Load() && n.SeverityUnlocalized == "WARNING" {
			g.warning = n
		}
	}
}

// commit runs send, which sends a COMMIT. If the connection ends in it, the guard stays, because the
// driver still tries to cancel the COMMIT.
func (g *guard) commit(send func() error) error {
	g.warning = nil
	g.committing.Store(true)
	if err := send(); err != nil {
		return uncertain(err)
	}
	g.committing.Store(false)
	if warning := g.warning; warning != nil {
		return uncertain(fmt.Errorf("the server warns: %s", warning.Message))
	}
	return nil
}
