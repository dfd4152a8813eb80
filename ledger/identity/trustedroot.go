package identity

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"regexp"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// MaxTrustedRoot is the maximum size of a trusted root in bytes.
const MaxTrustedRoot = 256 << 10

// A TrustedRoot is a version of a trusted root that an org has set: the authorities and logs of a
// Sigstore instance. The highest version is in effect. Earlier ones are kept to verify what was
// recorded under them.
type TrustedRoot struct {
	Org     string `json:"org"`
	Name    string `json:"name"`
	Version int    `json:"version"`
	// Digest is the hex SHA-256 of the document.
	Digest string `json:"digest"`
	// Document is the JSON of the trusted root as it was set. It is empty in lists, and if this
	// version removes the trusted root.
	Document  string      `json:"document,omitzero"`
	Removed   bool        `json:"removed,omitzero"`
	CreatedAt ledger.Time `json:"created_at"`
	// Event is the ID of the event about the version.
	Event string `json:"event"`
}

var trustedRootName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,63}$`)

// CheckTrustedRootName returns an error if a name is not valid for a trusted root.
func CheckTrustedRootName(name string) error {
	switch {
	case name == "":
		return errors.New("required: the name of a trusted root of the org (use e.g. public-good)")
	case !trustedRootName.MatchString(name):
		return errors.New(text.Quote(name) + " is not a name of a trusted root (use 1 to 64 of a-z, 0-9, dot and -)")
	}
	return nil
}

// NewTrustedRoot validates a document and returns the version of a trusted root to store. The store
// sets its org, version, time and event. Without a document, it removes the trusted root.
func NewTrustedRoot(name string, document []byte, parse RootParser) (TrustedRoot, error) {
	if err := CheckTrustedRootName(name); err != nil {
		return TrustedRoot{}, ledger.FieldErrorf(ledger.CodeInvalidField, "name", "%v", err)
	}
	r := TrustedRoot{Name: name, Document: string(document), Removed: len(document) == 0}
	digest := sha256.Sum256(document)
	r.Digest = hex.EncodeToString(digest[:])
	if r.Removed {
		return r, nil
	}
	if _, err := parse.parse(r.Document); err != nil {
		return TrustedRoot{}, ledger.FieldErrorf(ledger.CodeInvalidField, "document", "%v", err)
	}
	return r, nil
}

// Logged returns the event by which the version is in the log of its org. It has no ID and no
// Timestamp.
func (r TrustedRoot) Logged() ledger.IdentityEvent {
	action := ledger.IdentityChanged
	switch {
	case r.Removed:
		action = ledger.IdentityRevoked
	case r.Version == 1:
		action = ledger.IdentityAdded
	}
	digest := sha256.Sum256([]byte(r.Document))
	return ledger.IdentityEvent{
		Org: r.Org, Action: action, IdentityID: r.Name, Kind: ledger.KindTrustedRoot,
		Key: hex.EncodeToString(digest[:]), Version: r.Version,
	}
}
