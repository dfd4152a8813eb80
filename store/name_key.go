package store

import "github.com/ledgerd/ledgerd/ledger/identity"

// Predicates, predicate types, signers and keys are rows of their own, which
// never change, so that the rows that refer to them stay small. What is read of
// them is remembered: neither lists nor derivations have to join them.

// A nameKey identifies such a row by what it stands for.
type nameKey struct {
	table nameTable
	orgID int64
	name  string // of a key: its digest, as bytes
}

// A nameTable is one of these tables.
type nameTable uint8

const (
	predicatesTable nameTable = iota
	typesTable
	signersTable
	keysTable
)

// find returns the query for the row of a name. Its parameters are the org and
// the name.
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

// value returns the name as its column holds it.
func (k nameKey) value() any {
	if k.table == keysTable {
		return []byte(k.name)
	}
	return k.name
}

// A signerName is the DN of a signer, and its text.
type signerName struct {
	dn   identity.DN
	text string
}
