package terminal

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
)

// AuthorName returns the name of an author, or the e-mail address if there is no name.
func AuthorName(a ledger.Author) string {
	if a.Name == "" {
		return a.Email
	}
	return a.Name
}

// Author returns the name and e-mail address of an author, as far as they are known.
func Author(a ledger.Author) string {
	switch {
	case a == (ledger.Author{}):
		return "unknown"
	case a.Name == "" || a.Email == "":
		return a.Name + a.Email
	}
	return fmt.Sprintf("%s <%s>", a.Name, a.Email)
}
