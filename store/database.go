package store

import (
	"net/url"
	"strings"
)

// IsPostgres reports whether a database is the URL of one on a PostgreSQL server, and not a file.
func IsPostgres(database string) bool {
	return strings.HasPrefix(database, "postgres://") || strings.HasPrefix(database, "postgresql://")
}

// Redacted returns a database without the password in its URL.
func Redacted(database string) string {
	if !IsPostgres(database) {
		return database
	}
	parsed, err := url.Parse(database)
	if err != nil {
		return "postgres://…"
	}
	if parsed.Query().Has("password") {
		query := parsed.Query()
		query.Set("password", "xxxxx")
		parsed.RawQuery = query.Encode()
	}
	return parsed.Redacted()
}
