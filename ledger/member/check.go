package member

import (
	"net/url"
	"strings"
	"unicode"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// maxText is the size of an issuer, subject, claim or value, in bytes.
const maxText = 255

// CheckIssuer checks the URL of an issuer. Only the machine itself may have one without TLS.
func CheckIssuer(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || len(s) > maxText:
		return invalidField("issuer", "%s is not the URL of an issuer (use e.g. https://acme.okta.com)", text.Quote(s))
	case u.Scheme != "https" && !(u.Scheme == "http" && isLoopback(u.Hostname())):
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
