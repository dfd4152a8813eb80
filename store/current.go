package store

import "github.com/ledgerd/ledgerd/store/sqlite"

// IsCurrent reports whether Open would neither create nor migrate the database file.
// It reports false for a database on a server.
func IsCurrent(path string) bool { return !IsPostgres(path) && sqlite.IsCurrent(path) }
