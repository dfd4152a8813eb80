// Package identity verifies who signed. It manages the keys and roots that an org
// trusts, parses the distinguished names of signers, and finds the signer of a
// signature.
package identity

import (
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity/sshkey"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// A Kind is the kind of an identity: a key, a root or an entry for keyless signers.
type Kind string

// The kinds of identity.
const (
	// KeyIdentity is the public key, or the certificate, of one signer.
	KeyIdentity Kind = "key"
	// RootIdentity is a CA certificate. It trusts every certificate that chains to it.
	RootIdentity Kind = "root"
	// SigstoreIdentity is an entry of the allow-list for keyless signers. It has no key: it admits
	// Sigstore certificates that match it, and names their signer.
	SigstoreIdentity Kind = "sigstore"
)

const maxPEM = 64 << 10

// An Identity is a key or a root certificate that an org trusts, or an entry of its allow-list for
// keyless signers.
type Identity struct {
	ID   string `json:"id"`
	Org  string `json:"org"`
	Kind Kind   `json:"kind"`
	// DN names the signer. For a root, it is the certificate's subject.
	DN    string `json:"dn"`
	Email string `json:"email,omitzero"`
	// Emails has all e-mail addresses, Email first, if there are several.
	Emails []string `json:"emails,omitzero"`
	// Logins are accounts of the signer at forges, in the form of LoginAt.
	Logins []string `json:"logins,omitzero"`
	// May has the predicates that the identity may attest; nil means every predicate.
	May Predicates `json:"may,omitzero"`
	// DNPattern is a Pattern. The root trusts only certificates whose subject matches it;
	// if it is empty, all. It is empty for other kinds.
	DNPattern string `json:"dn_pattern,omitzero"`
	// Sigstore says which certificates a SigstoreIdentity admits; nil for other kinds.
	Sigstore *ledger.SigstoreEntry `json:"sigstore,omitzero"`
	// PEM is the public key or certificate, as registered. It is empty for a SigstoreIdentity.
	PEM string `json:"pem"`
	// Fingerprint is the hex SHA-256 of the DER SubjectPublicKeyInfo or, for a SigstoreIdentity, of
	// its entry.
	Fingerprint string `json:"fingerprint"`
	// NotAfter is when the certificate expires; zero for a bare key.
	NotAfter  ledger.Time `json:"not_after,omitzero"`
	CreatedAt ledger.Time `json:"created_at"`
	RevokedAt ledger.Time `json:"revoked_at,omitzero"`
	// DistrustedSince is the time from which on evidence by the identity does not count; zero
	// if all of it counts.
	DistrustedSince ledger.Time `json:"distrusted_since,omitzero"`
	// Distinct reports whether the signer with the DN is another person than all others with the
	// same common name, e-mail address or login, who count once.
	Distinct bool `json:"distinct,omitzero"`
	// Event is the ID of the latest event about the identity. It is empty if it was added
	// before a release that logs identities, until the server has logged it.
	Event string `json:"event,omitzero"`
}

// Logged returns the event by which the identity, as it is, is in the log of its org. It
// has no ID and no Timestamp.
func (i Identity) Logged(action ledger.IdentityAction) (ledger.IdentityEvent, error) {
	e := ledger.IdentityEvent{
		Org: i.Org, Action: action, IdentityID: i.ID, Kind: string(i.Kind), DN: i.DN, Email: i.Email,
		Emails: i.Emails, Logins: i.Logins, May: i.May, DNPattern: i.DNPattern, Key: i.Fingerprint,
		NotAfter: i.NotAfter, RevokedAt: i.RevokedAt, DistrustedSince: i.DistrustedSince, Sigstore: i.Sigstore,
	}
	if i.Kind == SigstoreIdentity {
		return e, nil
	}
	m, err := parseMaterial(i.PEM)
	if err != nil || m.cert == nil {
		return e, err
	}
	digest := sha256.Sum256(m.cert.Raw)
	e.Certificate, e.NotBefore = hex.EncodeToString(digest[:]), ledger.TimeOf(m.cert.NotBefore)
	return e, nil
}

// PublicKey returns the key of the identity: for a root, that of its certificate. It is an error for
// a SigstoreIdentity, which has no key.
func (i Identity) PublicKey() (crypto.PublicKey, error) {
	m, err := parseMaterial(i.PEM)
	return m.pub, err
}

// Digest returns the hex SHA-256 of what the identity verifies signatures with, as the Fingerprint must
// be.
func (i Identity) Digest() (string, error) {
	switch {
	case i.Kind == SigstoreIdentity && i.Sigstore != nil:
		return entryDigest(*i.Sigstore), nil
	case i.Kind == SigstoreIdentity:
		return "", fmt.Errorf("identity %s: it has no entry for keyless signers", i.ID)
	}
	public, err := i.PublicKey()
	if err != nil {
		return "", err
	}
	return Fingerprint(public)
}

// Addresses returns all e-mail addresses of the identity, the first one first.
func (i Identity) Addresses() []string {
	if i.Email == "" || len(i.Emails) > 0 {
		return i.Emails
	}
	return []string{i.Email}
}

// AuthorNames returns the e-mail addresses and the logins by which commits may name the signer.
func (i Identity) AuthorNames() []string { return slices.Concat(i.Addresses(), i.Logins) }

// A NewIdentity is the body of a request to trust a key, a root or keyless signers. PEM holds a
// public key, which requires a DN, or an X.509 certificate, whose subject is the DN. The public key may also
// be the line of an OpenSSH public key, and is stored as PEM. A SigstoreIdentity has Sigstore, DN and May
// instead.
type NewIdentity struct {
	Kind  Kind   `json:"kind"`
	PEM   string `json:"pem,omitzero"`
	DN    string `json:"dn,omitzero"`
	Email string `json:"email,omitzero"`
	// Emails has all e-mail addresses. If Email is given, it is the first.
	Emails []string `json:"emails,omitzero"`
	// Logins are as in Identity; a root has none.
	Logins []string `json:"logins,omitzero"`
	// May and DNPattern are as in Identity.
	May       Predicates            `json:"may,omitzero"`
	DNPattern string                `json:"dn_pattern,omitzero"`
	Sigstore  *ledger.SigstoreEntry `json:"sigstore,omitzero"`
}

// Identity validates the request and returns the identity to store. The store sets its
// id, org and times.
func (n NewIdentity) Identity() (Identity, error) {
	if n.Kind == SigstoreIdentity {
		return n.keyless()
	}
	if n.Sigstore != nil {
		return Identity{}, ledger.FieldErrorf(ledger.CodeInvalidField, "sigstore", "allowed only for the kind sigstore")
	}
	pemText, err := asPEM(n.PEM)
	if err != nil {
		return Identity{}, err
	}
	m, err := readMaterial(pemText)
	if err != nil {
		return Identity{}, err
	}

	id := Identity{Kind: n.Kind, PEM: pemText}
	switch n.Kind {
	case KeyIdentity:
		id.DN, err = n.keyDN(m)
	case RootIdentity:
		id.DN, err = n.rootDN(m)
	default:
		err = ledger.FieldErrorf(ledger.CodeInvalidField, "kind", "%q is not an identity kind (use key, root or sigstore)",
			text.Clip(string(n.Kind)))
	}
	if err != nil {
		return Identity{}, err
	}
	if id.Email, id.Emails, err = checkedEmails(n.Kind, n.Email, n.Emails, m.cert); err != nil {
		return Identity{}, err
	}
	if id.Logins, err = checkedLogins(n.Kind == RootIdentity, n.Logins); err != nil {
		return Identity{}, err
	}
	if id.May, err = n.May.checked(); err != nil {
		return Identity{}, err
	}
	if id.DNPattern, err = checkedPattern(n.Kind, n.DNPattern); err != nil {
		return Identity{}, err
	}

	if m.cert != nil {
		if id.NotAfter = ledger.TimeOf(m.cert.NotAfter); id.NotAfter <= 0 { // the zero Time would mean no expiry
			return Identity{}, ledger.FieldErrorf(ledger.CodeInvalidField, "pem", "the certificate expired before 1970")
		}
	}
	id.Fingerprint, err = Fingerprint(m.pub)
	return id, err
}

// keyless validates a request for a SigstoreIdentity.
func (n NewIdentity) keyless() (Identity, error) {
	switch {
	case n.Sigstore == nil:
		return Identity{}, ledger.FieldErrorf(ledger.CodeInvalidField, "sigstore",
			"required for the kind sigstore: which certificates it admits")
	case n.PEM != "":
		return Identity{}, ledger.FieldErrorf(ledger.CodeInvalidField, "pem",
			"not allowed for a sigstore identity, which has no key")
	case len(n.May) == 0:
		return Identity{}, errKeylessMay()
	}
	if err := checkEntry(n.Sigstore); err != nil {
		return Identity{}, err
	}

	entry := *n.Sigstore
	id := Identity{Kind: n.Kind, Sigstore: &entry}
	var err error
	if id.DN, err = n.givenDN(); err != nil {
		return Identity{}, err
	}
	if id.Email, id.Emails, err = checkedEmails(n.Kind, n.Email, n.Emails, nil); err != nil {
		return Identity{}, err
	}
	if id.Logins, err = checkedLogins(n.Kind == RootIdentity, n.Logins); err != nil {
		return Identity{}, err
	}
	if id.May, err = n.May.checked(); err != nil {
		return Identity{}, err
	}
	if id.DNPattern, err = checkedPattern(n.Kind, n.DNPattern); err != nil {
		return Identity{}, err
	}
	id.Fingerprint = entryDigest(entry)
	return id, nil
}

func errKeylessMay() error {
	return ledger.FieldErrorf(ledger.CodeInvalidField, "may",
		"required for a sigstore identity (use e.g. build:*, or * for every predicate)")
}

// checkedEmails validates the e-mail addresses of an identity, of which email is the first if both
// are given. It returns the first, and all if they are several. Without any, it is that of the
// signer's certificate.
func checkedEmails(kind Kind, email string, emails []string, cert *x509.Certificate) (string, []string, error) {
	if kind != KeyIdentity && (email != "" || len(emails) > 0) {
		return "", nil, ledger.FieldErrorf(ledger.CodeInvalidField, emailField(emails),
			"not allowed for a %s identity: signers' addresses come from their certificates", kind)
	}
	if err := CheckEmail(email); err != nil {
		return "", nil, err
	}
	if len(emails) > maxEmails {
		return "", nil, ledger.FieldErrorf(ledger.CodeInvalidField, "emails", "too many: %d, at most %d", len(emails),
			maxEmails)
	}
	if email != "" && len(emails) > 0 && emails[0] != email {
		return "", nil, ledger.FieldErrorf(ledger.CodeInvalidField, "emails", "the first is not the email %s (omit email)",
			text.Quote(email))
	}

	var all []string
	for i, address := range emails {
		if err := checkAddress(text.Entry("emails", i), address); err != nil {
			return "", nil, err
		}
		if !slices.Contains(all, address) {
			all = append(all, address)
		}
	}
	switch {
	case len(all) > 1:
		return all[0], all, nil
	case len(all) == 1:
		return all[0], nil, nil
	case email == "" && kind == KeyIdentity && cert != nil:
		if given := emailsOf(cert); len(given) > 0 && CheckEmail(given[0]) == nil {
			email = given[0]
		}
	}
	return email, nil, nil
}

// emailField returns the field that is wrong if addresses are not allowed.
func emailField(emails []string) string {
	if len(emails) > 0 {
		return "emails"
	}
	return "email"
}

// checkedPattern validates the DN pattern of a root, and returns it as it is stored. A
// key has none.
func checkedPattern(kind Kind, pattern string) (string, error) {
	if pattern == "" {
		return "", nil
	}
	if kind != RootIdentity {
		return "", ledger.FieldErrorf(ledger.CodeInvalidField, "dn_pattern",
			"not allowed for a %s identity, which has one DN (limit it with may)", kind)
	}
	p, err := ParsePattern(pattern)
	if err != nil {
		return "", ledger.FieldErrorf(ledger.CodeInvalidField, "dn_pattern", "%v", err)
	}
	return p.String(), nil
}

// KeyDigest returns the SHA-256 of the identity's key, as in [Signer]: the Fingerprint
// in binary. It is an error for other kinds than key, which sign no attestations with a key of their own.
func (i Identity) KeyDigest() (digest [sha256.Size]byte, err error) {
	if i.Kind != KeyIdentity {
		return digest, fmt.Errorf("identity %s: a %s has no signing key", i.ID, i.Kind)
	}
	sum, err := hex.DecodeString(i.Fingerprint)
	if err != nil || len(sum) != len(digest) {
		return digest, fmt.Errorf("identity %s: fingerprint %q is not a hex SHA-256", i.ID, text.Clip(i.Fingerprint))
	}
	return [sha256.Size]byte(sum), nil
}

// keyDN returns the DN of a signer: the certificate's subject, or n.DN for a bare key.
func (n NewIdentity) keyDN(m material) (string, error) {
	if m.cert != nil {
		dn, err := signerDN(m.cert.Subject)
		if err != nil {
			return "", ledger.FieldErrorf(ledger.CodeInvalidField, "pem", "the certificate does not name a signer: %v", err)
		}
		return dn.String(), n.checkGivenDN(dn)
	}
	return n.givenDN()
}

// givenDN returns n.DN, which must be complete: nothing else names the signer.
func (n NewIdentity) givenDN() (string, error) {
	what := "bare key"
	if n.Kind == SigstoreIdentity {
		what = "sigstore identity"
	}
	if n.DN == "" {
		return "", ledger.FieldErrorf(
			ledger.CodeInvalidField, "dn", "required for a %s (use e.g. cn=ci,ou=build,o=acme)", what)
	}
	dn, err := ParseDN(n.DN)
	if err == nil {
		err = dn.CheckVisible()
	}
	if err != nil {
		return "", ledger.FieldErrorf(ledger.CodeInvalidField, "dn", "%v", err)
	}
	if dn.OU == "" || dn.O == "" {
		return "", ledger.FieldErrorf(ledger.CodeInvalidField, "dn", "%q is incomplete: a %s needs cn, ou and o",
			dn, what)
	}
	return dn.String(), nil
}

// rootDN returns the subject of a CA certificate, as a DN if it is one.
func (n NewIdentity) rootDN(m material) (string, error) {
	if m.cert == nil {
		return "", ledger.FieldErrorf(ledger.CodeInvalidField, "pem", "a root must be a CA certificate, not a bare key")
	}
	if !m.cert.BasicConstraintsValid || !m.cert.IsCA {
		return "", ledger.FieldErrorf(ledger.CodeInvalidField, "pem", "not a CA certificate (no basicConstraints CA:TRUE): "+
			"register it as a key, or register its issuer as the root")
	}
	if m.cert.KeyUsage != 0 && m.cert.KeyUsage&x509.KeyUsageCertSign == 0 {
		return "", ledger.FieldErrorf(
			ledger.CodeInvalidField, "pem", "the CA certificate may not issue certificates (keyUsage lacks keyCertSign)")
	}

	subject := m.cert.Subject.String()
	if subject == "" {
		return "", ledger.FieldErrorf(ledger.CodeInvalidField, "pem", "the CA certificate has no subject")
	}
	if err := CheckVisible(subject); err != nil {
		return "", ledger.FieldErrorf(ledger.CodeInvalidField, "pem", "the CA certificate's subject %v", err)
	}
	values, err := nameValues(m.cert.Subject)
	dn := dnOf(values)
	if err == nil && dn != (DN{}) {
		return dn.String(), n.checkGivenDN(dn)
	}
	// No signer has a root's name, so it need not be a DN.
	if n.DN != "" && n.DN != subject {
		return "", ledger.FieldErrorf(ledger.CodeInvalidField, "dn", "differs from the certificate's subject %q (omit dn)",
			text.Clip(subject))
	}
	return subject, nil
}

// checkGivenDN refuses a DN that differs from the certificate's subject.
func (n NewIdentity) checkGivenDN(subject DN) error {
	if n.DN == "" {
		return nil
	}
	given, err := ParseDN(n.DN)
	if err != nil && n.DN != subject.String() {
		return ledger.FieldErrorf(ledger.CodeInvalidField, "dn", "%v", err)
	}
	if err == nil && given != subject {
		return ledger.FieldErrorf(ledger.CodeInvalidField, "dn", "differs from the certificate's subject %q (omit dn)",
			subject)
	}
	return nil
}

// asPEM returns a public key of OpenSSH as PEM, and any other text as it is.
func asPEM(given string) (string, error) {
	if strings.Contains(given, "-----BEGIN ") {
		return given, nil
	}
	keys, err := sshkey.ParsePublic(given)
	if err != nil {
		return "", ledger.FieldErrorf(ledger.CodeInvalidField, "pem", "%v", err)
	}
	switch len(keys) {
	case 0:
		return given, nil
	case 1:
		return PublicPEM(keys[0])
	}
	return "", ledger.FieldErrorf(ledger.CodeInvalidField, "pem", "has %d SSH keys: register one at a time", len(keys))
}

// A material is the content of an identity's PEM.
type material struct {
	pub  crypto.PublicKey
	key  publicKey
	cert *x509.Certificate // nil for a bare key
}

// readMaterial parses a PEM block with one public key or certificate, and refuses keys
// that are not supported. Errors are about the field pem.
func readMaterial(pemText string) (m material, err error) {
	if m, err = parseMaterial(pemText); err != nil {
		return material{}, err
	}
	if m.key, err = publicKeyOf(m.pub); err != nil {
		return material{}, ledger.FieldErrorf(ledger.CodeInvalidField, "pem", "%v", err)
	}
	return m, nil
}

// parseMaterial is like readMaterial, but does not set the field key.
func parseMaterial(pemText string) (material, error) {
	refuse := func(format string, args ...any) (material, error) {
		return material{}, ledger.FieldErrorf(ledger.CodeInvalidField, "pem", format, args...)
	}
	if strings.Contains(pemText, "PRIVATE KEY-----") || strings.Contains(pemText, "PuTTY-User-Key-File") {
		return refuse("contains a private key, which is compromised now: create a new one and register its public key")
	}
	if len(pemText) > maxPEM {
		return refuse("too long: at most %d bytes", maxPEM)
	}

	block, rest := pem.Decode([]byte(pemText))
	if block == nil && strings.Contains(pemText, "BEGIN SSH2 PUBLIC KEY") {
		return refuse("an SSH key in the format of RFC 4716 is not read (convert it with 'ssh-keygen -i -f FILE')")
	}
	if block == nil {
		return refuse("no PEM block found (it begins with -----BEGIN PUBLIC KEY----- or -----BEGIN CERTIFICATE-----), and " +
			"no SSH key (such as ssh-ed25519 AAAA…)")
	}
	if len(strings.TrimSpace(string(rest))) > 0 {
		return refuse("more text follows the PEM block: register one key or certificate at a time")
	}

	var m material
	var err error
	switch block.Type {
	case "PUBLIC KEY":
		m.pub, err = x509.ParsePKIXPublicKey(block.Bytes)
	case "CERTIFICATE":
		if m.cert, err = x509.ParseCertificate(block.Bytes); err == nil {
			m.pub = m.cert.PublicKey
		}
	default:
		return refuse("PEM block of type %q is not supported (use PUBLIC KEY or CERTIFICATE)", text.Clip(block.Type))
	}
	if err != nil {
		return refuse("cannot parse the %s: %v", strings.ToLower(block.Type), err)
	}
	return m, nil
}
