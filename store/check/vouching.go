package check

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A vouching holds the keyrings of identities, by ID, and which attestations were mapped again.
type vouching struct {
	keyrings map[string]*identity.Keyring
	// mappedBelow is the row id below which attestations may have another outcome than the one
	// with which they were recorded.
	mappedBelow int64
}

// maxKeyrings limits the keyrings that are kept.
const maxKeyrings = 10_000

// keyring returns the keyring of an identity as it was before it was revoked or limited, or
// nil if there is no such identity, or nothing can be verified with its key.
func (v *vouching) keyring(conn *sqldb.Conn, id string) (*identity.Keyring, error) {
	if k, ok := v.keyrings[id]; ok {
		return k, nil
	}
	var list []identity.Identity
	err := conn.Each(func(row sqldb.Scanner) error {
		i := identity.Identity{ID: id}
		err := row.Scan(&i.Kind, &i.DN, &i.PEM)
		list = append(list, i)
		return err
	}, "SELECT kind, dn, pem FROM identities WHERE identity_id = ?", id)
	if err != nil {
		return nil, fmt.Errorf("read identity: %w", err)
	}

	if len(v.keyrings) >= maxKeyrings {
		clear(v.keyrings)
	}
	var keyring *identity.Keyring
	if len(list) > 0 {
		if keyring, err = identity.NewKeyring(list); err != nil {
			keyring = nil // the check of the identities reports it
		}
	}
	v.keyrings[id] = keyring
	return keyring, nil
}
