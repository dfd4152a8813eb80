package terminal

import "github.com/ledgerd/ledgerd/ledger"

// AuthorName returns the name of an author, or the e-mail address if there is no name.
func AuthorName(a ledger.Author) string {
	if a.Name == "" {
		return a.Email
	}
	return a.Name
}
