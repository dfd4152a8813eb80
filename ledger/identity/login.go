package identity

import (
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// maxLogins is the maximum number of logins of an identity, and maxLogin that of the bytes of one.
const (
	maxLogins = 16
	maxLogin  = 254
)

// publicForges has the hosts of public forges and the names that stand for them in logins.
var publicForges = [...]struct{ name, host string }{
	{"github", "github.com"}, {"gitlab", "gitlab.com"}, {"codeberg", "codeberg.org"}, {"gitea", "gitea.com"},
	{"bitbucket", "bitbucket.org"},
}

// LoginAt returns the login of an account at the forge with a host: github:eve at github.com, and
// gitlab.example.com:eve at a host that has no short name.
func LoginAt(host, account string) string {
	host = strings.ToLower(host)
	for _, f := range publicForges {
		if host == f.host {
			host = f.name
		}
	}
	return host + ":" + account
}

// checkedLogins validates the logins of an identity, and returns them in the form of LoginAt,
// without duplicates. A root has none.
func checkedLogins(isRoot bool, logins []string) ([]string, error) {
	if isRoot && len(logins) > 0 {
		return nil, ledger.FieldErrorf(ledger.CodeInvalidField, "logins",
			"not allowed for a root identity, which has many signers")
	}
	if len(logins) > maxLogins {
		return nil, ledger.FieldErrorf(ledger.CodeInvalidField, "logins", "too many: %d, at most %d", len(logins), maxLogins)
	}

	var list []string
	for i, login := range logins {
		host, account, _ := strings.Cut(login, ":")
		if !isForge(host) || !isAccount(account) || len(login) > maxLogin {
			return nil, ledger.FieldErrorf(ledger.CodeInvalidField, text.Entry("logins", i),
				"%s is not a login (use e.g. github:eve, gitlab:eve or gitlab.example.com:eve)", text.Quote(login))
		}
		if other := withoutNoReply(host); other != strings.ToLower(host) {
			return nil, ledger.FieldErrorf(ledger.CodeInvalidField, text.Entry("logins", i),
				"%s never matches: this is not the forge's own host (use %s)", text.Quote(login), LoginAt(other, account))
		}
		login = LoginAt(host, account)
		isSame := func(other string) bool { return strings.EqualFold(other, login) }
		if !slices.ContainsFunc(list, isSame) {
			list = append(list, login)
		}
	}
	return list, nil
}

// withoutNoReply returns the host of a forge of which a host has the no-reply addresses, or the pages
// of a public forge. It returns others in lower case.
func withoutNoReply(host string) string {
	host = strings.ToLower(host)
	if bare, ok := strings.CutPrefix(host, "www."); ok && LoginAt(bare, "") != bare+":" {
		return bare
	}
	for _, prefix := range []string{"users.noreply.", "noreply."} {
		if forge, ok := strings.CutPrefix(host, prefix); ok {
			return forge
		}
	}
	return host
}

// isForge reports whether a text is the name of a public forge, or a host with a dot.
func isForge(host string) bool {
	for _, f := range publicForges {
		if strings.EqualFold(host, f.name) {
			return true
		}
	}
	isOther := func(r rune) bool { return !isAlphanumeric(r) && r != '-' && r != '.' }
	labels := strings.Split(host, ".")
	return len(labels) > 1 && !slices.Contains(labels, "") && !strings.ContainsFunc(host, isOther)
}

// isAccount reports whether a text can be the name of an account, such as eve or dependabot[bot].
func isAccount(name string) bool {
	isOther := func(r rune) bool { return !isAlphanumeric(r) && !strings.ContainsRune("-_.[]", r) }
	return strings.ContainsFunc(name, isAlphanumeric) && !strings.ContainsFunc(name, isOther)
}

func isAlphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}
