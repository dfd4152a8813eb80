package txn

import (
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/internal/cursor"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A Reader is a connection that reads the ledger.
type Reader struct {
	*sqldb.Conn
	Now    ledger.Time // start of the read or write, by the ledger's clock
	Writes bool        // whether it is the writer

	cursors *cursor.Sealer
}

// Listing returns the list of a kind that a row owns, such as an org or a repo.
func (rd Reader) Listing(kind string, owner int64) Listing {
	return newListing(rd.cursors, kind, owner)
}
