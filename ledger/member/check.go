package member

import (
	"strings"
	"unicode"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/issuer"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// maxText is the size of an issuer, subject, claim or value, in bytes.
const maxText = 255

// CheckIssuer returns a field error if s is not the URL of an issuer with https, or with http on this machine.
func CheckIssuer(s string) error {
	u, err := issuer.Parse(s, maxText)
	switch {
	case err != nil:
		return invalidField("issuer", "%s: %v", text.Quote(s), err)
	case u.Scheme != "https" && !isLoopback(u.Hostname()):
		return invalidField("issuer", "%s does not begin with https://", text.Quote(s))
	}
	return nil
}

func isLoopback(host string) bool { return host == "localhost" || host == "127.0.0.1" || host == "::1" }

func isText(s string) bool {
	return s != "" && len(s) <= maxText && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

func invalidField(field, format string, args ...any) error {
	return ledger.FieldErrorf(ledger.CodeInvalidField, field, format, args...)
}
