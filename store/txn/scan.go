package txn

import "github.com/ledgerd/ledgerd/store/sqldb"

// A Scanner is a row of a result.
type Scanner = sqldb.Scanner

// Ask asks a query for one row, as sqldb.Conn.Ask does. All functions whose name begins with Ask return the
// function that takes the answer; this one's is converted by scan.
func Ask[T any](rd Reader, scan func(Scanner) (T, error), query string, args ...any) func() (T, error) {
	asked := rd.Ask(query, args...)
	return func() (T, error) { return scan(asked.Row()) }
}

// AskAll is like Ask, for all rows of a query, which are few.
func AskAll[T any](rd Reader, scan func(Scanner) (T, error), query string, args ...any) func() ([]T, error) {
	asked := rd.Ask(query, args...)
	return func() ([]T, error) { return sqldb.ScanAll(asked.Each, scan) }
}

// ScanID scans a row with one row id.
func ScanID(row Scanner) (id int64, err error) {
	err = row.Scan(&id)
	return id, err
}

// ScanText scans a row with one text.
func ScanText(row Scanner) (string, error) {
	var text string
	err := row.Scan(&text)
	return text, err
}
