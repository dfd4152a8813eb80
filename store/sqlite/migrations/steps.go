// Package migrations has what brings databases of earlier releases to the schema of this one: a script of SQL for each
// version, which package sqlite runs, and the steps in Go of those that need the rules of the ledger. New databases are
// made by schema.sql.
package migrations

import "github.com/ledgerd/ledgerd/store/sqldb"

// Steps returns the steps by the version of the schema that they are a part of. Each runs after the script of the
// version, in the same transaction.
func Steps() map[int]func(*sqldb.Conn) error {
	return map[int]func(*sqldb.Conn) error{6: addKeysAndFolds, 9: addPeople, 10: addTrust}
}
