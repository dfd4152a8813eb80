// Package passkey has how people confirm reviews with passkeys: the enrolment of a passkey, and
// what it signs when it confirms a review (Web Authentication, https://www.w3.org/TR/webauthn-3/).
// Only this package and its passkeytest use go-webauthn.
package passkey

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

const (
	// MaxPasskeys is the maximum number of passkeys of a member, without removed ones.
	MaxPasskeys = 20
	// MaxEver is the maximum number of passkeys of a member, with removed ones.
	MaxEver = 200
	// MaxName is the maximum number of characters of a name.
	MaxName = 100
	// Lifetime is how long a challenge can be answered.
	Lifetime = 10 * time.Minute
	// MaxRequest is the maximum size of a request in bytes.
	MaxRequest = 64 << 10

	// maxCredentialID is the maximum length of a credential ID in bytes (Web Authentication, 6.5.1).
	maxCredentialID = 1023
)

// A Passkey is a key of a member on a device or in a password manager.
type Passkey struct {
	ID     string `json:"id"`
	Org    string `json:"org"`
	Member string `json:"member"`
	// DN is the member's.
	DN string `json:"dn"`
	// Name is what the member calls it.
	Name string `json:"name"`
	// RPID is the domain that the passkey is for.
	RPID string `json:"rp_id"`
	// CredentialID is how the device knows it.
	CredentialID []byte `json:"credential_id"`
	// PublicKey is the key in the form of COSE, and Key its SHA-256 in hex.
	PublicKey []byte      `json:"public_key"`
	Key       string      `json:"key"`
	CreatedAt ledger.Time `json:"created_at"`
	RemovedAt ledger.Time `json:"removed_at,omitzero"`
}

// Event returns the event that logs an action on the passkey.
func (p Passkey) Event(action ledger.IdentityAction) ledger.IdentityEvent {
	return ledger.IdentityEvent{
		Org: p.Org, Action: action, IdentityID: p.ID, Kind: ledger.KindPasskey, DN: p.DN, Key: p.Key, RPID: p.RPID,
		RevokedAt: p.RemovedAt,
	}
}

// A Party is the server as a relying party of Web Authentication.
type Party struct {
	// ID is the domain of the passkeys. Browsers use a passkey only for the domain that it was made for.
	ID string
	// Origin is the scheme and host of the pages, such as https://ledger.example.com.
	Origin string
}

// NewParty returns the party with an ID whose pages are at an URL. It returns an error unless browsers
// let these pages use passkeys for this ID.
func NewParty(id, pages string) (Party, error) {
	u, err := url.Parse(pages)
	if err != nil {
		return Party{}, fmt.Errorf("parse the URL of the pages: %w", err)
	}
	p := Party{id, originOf(u)}
	if !isDomain(id) {
		return p, fmt.Errorf("%.100q is not a domain in lower case (use one such as ledger.example.com)", id)
	}
	if !isOriginOf(p.Origin, id) {
		return p, fmt.Errorf("pages at %s cannot use passkeys for %s (they must be at https, or at http://localhost, and "+
			"the domain must be their host or a parent of it)", p.Origin, id)
	}
	return p, nil
}

// originOf returns the origin of a page as browsers name it: in lower case, without the port that its scheme
// implies.
func originOf(u *url.URL) string {
	port := u.Port()
	host := strings.TrimSuffix(strings.ToLower(u.Host), ":"+port)
	if port != "" && u.Scheme+port != "https443" && u.Scheme+port != "http80" {
		host += ":" + port
	}
	return u.Scheme + "://" + host
}

// isDomain reports whether s can be the ID of a party: a domain in lower case, not an address.
func isDomain(s string) bool {
	if s == "" || len(s) > 253 || net.ParseIP(s) != nil {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return false
		}
	}
	return true
}

// isOriginOf reports whether browsers let pages of an origin use passkeys for an ID.
func isOriginOf(origin, id string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Scheme+"://"+u.Host != origin {
		return false
	}
	host := u.Hostname()
	if u.Scheme != "https" && (u.Scheme != "http" || host != "localhost" && !strings.HasSuffix(host, ".localhost")) {
		return false
	}
	return host == id || strings.HasSuffix(host, "."+id)
}

// approval begins what is hashed to the challenge of a review, so that a passkey which signs it
// for another purpose does not confirm a review.
const approval = "ledgerd/approval/v1\x00"

// Challenge returns what a passkey signs to confirm the statement of a review: the SHA-256 of
// "ledgerd/approval/v1", a zero byte and the statement's pre-authentication encoding (DSSE).
func Challenge(payload []byte) [sha256.Size]byte {
	return sha256.Sum256(append([]byte(approval), attestation.PAE(attestation.StatementType, payload)...))
}

// Fingerprint returns the SHA-256 of a public key in the form of COSE, in hex.
func Fingerprint(publicKey []byte) string {
	sum := sha256.Sum256(publicKey)
	return hex.EncodeToString(sum[:])
}

// CheckName returns a field error if name cannot be the name of a passkey.
func CheckName(name string) error {
	if name == "" || utf8.RuneCountInString(name) > MaxName || identity.CheckVisible(name) != nil {
		return invalidField("name", "use 1 to %d visible characters", MaxName)
	}
	return nil
}

func encoded(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func invalidField(field, format string, args ...any) error {
	return ledger.FieldErrorf(ledger.CodeInvalidField, field, format, args...)
}
