package config

import (
	"path/filepath"

	"github.com/ledgerd/ledgerd/store"
)

// A Database is the path of a SQLite file, or the URL of a database on a PostgreSQL server.
type Database string

// IsServer reports whether the database is on a PostgreSQL server.
func (d Database) IsServer() bool { return store.IsPostgres(string(d)) }

// String returns the database without the password in its URL.
func (d Database) String() string { return store.Redacted(string(d)) }

// MarshalYAML returns the database without its password.
func (d Database) MarshalYAML() (any, error) { return d.String(), nil }

// Absolute returns the absolute path of a file, or a URL without its password.
func (d Database) Absolute() (string, error) {
	if d.IsServer() {
		return d.String(), nil
	}
	return filepath.Abs(string(d))
}
