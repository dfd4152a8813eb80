package store

import "github.com/ledgerd/ledgerd/store/sqldb"

type scanner = sqldb.Scanner

func scanID(row scanner) (id int64, err error) {
	err = row.Scan(&id)
	return id, err
}

func scanText(row scanner) (string, error) {
	var text string
	err := row.Scan(&text)
	return text, err
}
