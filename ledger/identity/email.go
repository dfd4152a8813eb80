package identity

import (
	"crypto/x509"
	"encoding/asn1"
	"net/mail"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

const (
	maxEmail  = 254 // bytes
	maxEmails = 16  // of a signer
)

// CheckEmail returns an error about the field email unless it is empty or an address
// without a name.
func CheckEmail(email string) error {
	if email == "" {
		return nil
	}
	return checkAddress("email", email)
}

// checkAddress returns an error about a field unless it has an address without a name. The part before the @ may have
// brackets, as forges write the accounts of programs in commits: 41898282+github-actions[bot]@users.noreply.github.com.
func checkAddress(field, email string) error {
	at := max(0, strings.LastIndexByte(email, '@'))
	plain := strings.NewReplacer("[", "", "]", "").Replace(email[:at]) + email[at:]
	if address, err := mail.ParseAddress(plain); err != nil || address.Address != plain || len(email) > maxEmail {
		return ledger.FieldErrorf(ledger.CodeInvalidField, field, "%q is not an e-mail address (use e.g. ci@acme.example)",
			text.Clip(email))
	}
	if err := CheckVisible(email); err != nil {
		return ledger.FieldErrorf(ledger.CodeInvalidField, field, "%v", err)
	}
	return nil
}

// oidEmail is the OID of the subject attribute emailAddress (RFC 2985). Older CAs use it
// instead of an alternative name.
var oidEmail = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 1}

// emailsOf returns the e-mail addresses in a certificate's alternative names and
// subject, at most maxEmails. It skips those with control or other invisible characters.
func emailsOf(cert *x509.Certificate) []string {
	var emails []string
	add := func(email string) {
		if len(emails) < maxEmails && email != "" && !slices.Contains(emails, email) &&
			!strings.ContainsFunc(email, isInvisible) {
			emails = append(emails, email)
		}
	}
	for _, email := range cert.EmailAddresses {
		add(email)
	}
	for _, attribute := range cert.Subject.Names {
		if email, ok := attribute.Value.(string); ok && attribute.Type.Equal(oidEmail) {
			add(email)
		}
	}
	return emails
}

// SignerEmails returns the e-mail addresses of the signer of a key with a certificate: those of its
// identity, and those in the certificate as long as there is room.
func SignerEmails(addresses, certified []string) []string {
	list := slices.Clone(addresses)
	for _, email := range certified {
		if !slices.Contains(list, email) && len(list) < maxEmails {
			list = append(list, email)
		}
	}
	return list
}
