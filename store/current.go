package store

import "github.com/ledgerd/ledgerd/store/sqlite"

// IsCurrent reports whether Open would neither create nor migrate the database file.
func IsCurrent(path string) bool { return sqlite.IsCurrent(path) }
