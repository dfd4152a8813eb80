package signers

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// Vouchers are the vouchers of identities, by ID. They are used by one goroutine at a time.
type Vouchers struct {
	known     map[string]Voucher
	parseRoot identity.RootParser
}

// NewVouchers returns vouchers. Without parseRoot, trusted roots vouch for nobody.
func NewVouchers(parseRoot identity.RootParser) *Vouchers {
	return &Vouchers{make(map[string]Voucher), parseRoot}
}

// A Voucher is the keyring of an identity as it was before it was revoked or limited, and when it was revoked.
// Keyring is nil if there is no such identity, or nothing can be verified with its key.
type Voucher struct {
	Keyring   *identity.Keyring
	RevokedAt ledger.Time
}

// maxKeyrings limits the keyrings that are kept.
const maxKeyrings = 10_000

// Of returns the voucher of an identity.
func (v *Vouchers) Of(conn *sqldb.Conn, id string) (found Voucher, err error) {
	if k, ok := v.known[id]; ok {
		return k, nil
	}
	var list []identity.Identity
	var org int64
	err = conn.Each(func(row sqldb.Scanner) error {
		i, entry := identity.Identity{ID: id}, ""
		err := row.Scan(&i.Kind, &i.DN, &i.PEM, &entry, &org, &found.RevokedAt)
		i.Sigstore = entryIn(entry)
		list = append(list, i)
		return err
	}, "SELECT kind, dn, pem, sigstore, org_id, revoked_at FROM identities WHERE identity_id = ?", id)
	if err != nil {
		return found, fmt.Errorf("read identity: %w", err)
	}

	if len(v.known) >= maxKeyrings {
		clear(v.known)
	}
	if len(list) > 0 {
		roots, err := rootsOf(conn, org, list[0])
		if err != nil {
			return found, err
		}
		if found.Keyring, err = identity.NewKeyring(list, v.parseRoot, roots...); err != nil {
			found.Keyring = nil // the check of the identities reports it
		}
	}
	v.known[id] = found
	return found, nil
}

const selectTrustedRoot = "SELECT name, version, digest, document, created_at, event_id FROM trusted_roots "

func scanTrustedRoot(row sqldb.Scanner) (r identity.TrustedRoot, err error) {
	var document []byte
	err = row.Scan(&r.Name, &r.Version, &r.Digest, &document, &r.CreatedAt, &r.Event)
	r.Document, r.Removed = string(document), len(document) == 0
	return r, err
}

// rootsOf returns all versions of the trusted root that an identity names: a later version need not
// verify what was recorded before.
func rootsOf(conn *sqldb.Conn, org int64, i identity.Identity) ([]identity.TrustedRoot, error) {
	if i.Sigstore == nil {
		return nil, nil
	}
	roots, err := sqldb.All(conn, scanTrustedRoot, selectTrustedRoot+"WHERE org_id = ? AND name = ? ORDER BY version", org,
		i.Sigstore.TrustedRoot)
	if err != nil {
		return nil, fmt.Errorf("read trusted roots: %w", err)
	}
	return roots, nil
}

// entryIn returns the entry for keyless signers in a row of an identity; nil without a valid one.
func entryIn(text string) *ledger.SigstoreEntry {
	var entry ledger.SigstoreEntry
	if text == "" || json.Unmarshal([]byte(text), &entry) != nil {
		return nil
	}
	return &entry
}
