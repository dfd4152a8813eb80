package signers

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store/txn"
)

// RowOf returns the row id of a name, or 0 if the name is not stored. Only the
// writer may call it.
func (sg *Signers) RowOf(rd txn.Reader, key NameKey) (int64, error) {
	if id, ok := sg.ids.Get(key); ok {
		return id, nil
	}
	var id int64
	err := rd.Row(key.table.find(), key.orgID, key.value()).Scan(&id)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("find %q: %w", key.name, err)
	}
	return id, nil
}

// RowFor returns the row id of a name, and inserts the name if it is missing.
func (sg *Signers) RowFor(t *txn.Tx, key NameKey, dn identity.DN) (int64, error) {
	id, err := sg.RowOf(t.Reader, key)
	if err != nil {
		return 0, err
	}
	if id == 0 {
		if id, err = insertName(t, key, dn); err != nil {
			return 0, fmt.Errorf("insert %q: %w", key.name, err)
		}
		sg.cached = true
	}
	sg.ids.Put(key, id)
	return id, nil
}

func insertName(t *txn.Tx, key NameKey, dn identity.DN) (int64, error) {
	switch key.table {
	case predicatesTable:
		return t.Insert("INSERT INTO predicates (org_id, name) VALUES (?, ?)", key.orgID, key.name)
	case typesTable:
		return t.Insert("INSERT INTO predicate_types (org_id, uri) VALUES (?, ?)", key.orgID, key.name)
	case signersTable:
		return t.Insert("INSERT INTO signers (org_id, dn, cn, folded) VALUES (?, ?, ?, ?)",
			key.orgID, key.name, dn.CN, dn.Fold())
	default:
		return t.Insert("INSERT INTO keys (org_id, digest) VALUES (?, ?)", key.orgID, key.value())
	}
}

// nameOf returns the value of a row id from the cache, or else by parsing the text that
// the query returns.
func nameOf[V any](
	rd txn.Reader, names *txn.Cache[int64, V], id int64, query string, parse func(string) (V, error),
) (v V, err error) {
	if v, ok := names.Get(id); ok {
		return v, nil
	}
	var text string
	if err := rd.Row(query, id).Scan(&text); err != nil {
		return v, fmt.Errorf("read name %d: %w", id, err)
	}
	if v, err = parse(text); err != nil {
		return v, fmt.Errorf("name %d: %w", id, err)
	}
	names.Put(id, v)
	return v, nil
}

func asIs(text string) (string, error) { return text, nil }

// Predicate returns the name of a predicate.
func (sg *Signers) Predicate(rd txn.Reader, id int64) (string, error) {
	return nameOf(rd, sg.predicates, id, "SELECT name FROM predicates WHERE id = ?", asIs)
}

// PredicateType returns the URI of a predicate type.
func (sg *Signers) PredicateType(rd txn.Reader, id int64) (string, error) {
	return nameOf(rd, sg.types, id, "SELECT uri FROM predicate_types WHERE id = ?", asIs)
}

// Signer returns the DN of a signer.
func (sg *Signers) Signer(rd txn.Reader, id int64) (SignerName, error) {
	return nameOf(rd, sg.signers, id, "SELECT dn FROM signers WHERE id = ?", parseSigner)
}

func parseSigner(text string) (SignerName, error) {
	dn, err := identity.ParseDN(text)
	return SignerName{dn, text}, err
}
