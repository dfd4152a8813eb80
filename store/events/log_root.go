package events

import (
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A LogRoot is the root hash of a transparency log with all its leaves.
type LogRoot struct {
	Org    string
	Epoch  int
	Leaves int64 // without those that an upgrade has still to compute
	Root   tlog.Hash
}

// LogRoots returns the roots of all logs, those of deleted orgs too. All is read on c, so within a
// transaction it is of one moment.
func LogRoots(c *sqldb.Conn) ([]LogRoot, error) {
	logs, err := sqldb.All(c, scanLog, selectLog+"ORDER BY o.name, l.epoch")
	if err != nil {
		return nil, fmt.Errorf("list logs: %w", err)
	}
	j, rd := &Journal{tiles: newTileCache()}, txn.Reader{Conn: c}
	roots := make([]LogRoot, len(logs))
	for i, l := range logs {
		size := l.Leaves
		if l.Building {
			size = min(l.Built, size)
		}
		root, err := j.root(rd, l, size)
		if err != nil {
			return nil, err
		}
		roots[i] = LogRoot{l.Org, l.Epoch, size, root}
	}
	return roots, nil
}
