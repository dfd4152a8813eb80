package store

import "github.com/ledgerd/ledgerd/ledger/identity"

// Predicates, predicate types, signers and keys have tables of their own, so rows
// that refer to them stay small. Their rows never change and are cached, so lists
// and derivations do not need to join the tables.

// A nameKey identifies a row of a nameTable by its content.
type nameKey struct {
	table nameTable
	orgID int64
	name  string // for a key: the bytes of its digest
}

// A nameTable is a table of predicates, predicate types, signers or keys.
type nameTable uint8

const (
	predicatesTable nameTable = iota
	typesTable
	signersTable
	keysTable
)

// find returns the query for the row id of a name. Its parameters are the org's row
// id and the name.
func (t nameTable) find() string {
	switch t {
	case predicatesTable:
		return "SELECT id FROM predicates WHERE org_id = ? AND name = ?"
	case typesTable:
		return "SELECT id FROM predicate_types WHERE org_id = ? AND uri = ?"
	case signersTable:
		return "SELECT id FROM signers WHERE org_id = ? AND dn = ?"
	default:
		return "SELECT id FROM keys WHERE org_id = ? AND digest = ?"
	}
}

// value returns the name as stored in its column.
func (k nameKey) value() any {
	if k.table == keysTable {
		return []byte(k.name)
	}
	return k.name
}

// A signerName is the DN of a signer, parsed and as text.
type signerName struct {
	dn   identity.DN
	text string
}

// A signature is the signer and the key of a signature: the row ids of their names.
type signature struct{ signerID, keyID int64 }

// A personKey is a signature in a version of the org's keyring. Joining two people
// changes the version.
type personKey struct {
	signature
	keyringVersion int64
}

// A namesKey is a signer with names, one per line, in a version of the org's keyring. Taking a name
// from a signer changes the version.
type namesKey struct {
	signerID, keyringVersion int64
	emails                   string
}

// A who is the person and the individual of a signer, as in policy.Evidence.
type who struct{ person, individual int64 }
