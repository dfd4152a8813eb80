package store

import (
	"context"
	"errors"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A backupEngine is an engine that can write a backup of its database itself.
type backupEngine interface {
	sqldb.Engine
	Backup(ctx context.Context, path string) (size int64, err error)
}

// Backup writes a copy of the database, verifies it, and returns its size in bytes. No file may
// have the path. The copy is one moment of the database, with all that was recorded before the
// call.
func (s *Store) Backup(ctx context.Context, path string) (size int64, err error) {
	engine, ok := s.db.Engine.(backupEngine)
	if !ok {
		return 0, errors.New("the database engine has no backups: use those of the database server")
	}
	return engine.Backup(ctx, path)
}
