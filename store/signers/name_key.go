package signers

import "github.com/ledgerd/ledgerd/ledger/identity"

// Predicates, predicate types, signers and keys have tables of their own, so rows
// that refer to them stay small. Their rows never change and are cached, so lists
// and derivations do not need to join the tables.

// A NameKey identifies a row of a nameTable by its content.
type NameKey struct {
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

// PredicateOf returns the key of the name of a predicate in an org.
func PredicateOf(orgID int64, name string) NameKey { return NameKey{predicatesTable, orgID, name} }

// PredicateTypeOf returns the key of the URI of a predicate type.
func PredicateTypeOf(orgID int64, uri string) NameKey { return NameKey{typesTable, orgID, uri} }

// SignerOf returns the key of the DN of a signer.
func SignerOf(orgID int64, dn string) NameKey { return NameKey{signersTable, orgID, dn} }

// KeyOf returns the key of the SHA-256 of a signing key.
func KeyOf(orgID int64, digest string) NameKey { return NameKey{keysTable, orgID, digest} }

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
func (k NameKey) value() any {
	if k.table == keysTable {
		return []byte(k.name)
	}
	return k.name
}

// A SignerName is the DN of a signer, parsed and as text.
type SignerName struct {
	DN   identity.DN
	Text string
}

// A Signature is the signer and the key of a signature: the row ids of their names.
type Signature struct{ SignerID, KeyID int64 }

// A PersonKey is a signature in a version of the org's keyring. Joining two people
// changes the version.
type PersonKey struct {
	Signature
	KeyringVersion int64
}

// A namesKey is a signer with names, one per line, in a version of the org's keyring. Taking a name
// from a signer changes the version.
type namesKey struct {
	signerID, keyringVersion int64
	emails                   string
}

// A Who is the person and the individual of a signer, as in policy.Evidence.
type Who struct{ Person, Individual int64 }
