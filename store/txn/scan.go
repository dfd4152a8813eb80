package txn

import "github.com/ledgerd/ledgerd/store/sqldb"

// A Scanner is a row of a result.
type Scanner = sqldb.Scanner

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
