package signers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// The limits of an org's trusted roots.
const (
	maxTrustedRoots    = 20
	maxTrustedVersions = 200 // of all of them
)

const (
	trustedRootColumns = "t.id, o.name, t.name, t.version, t.digest, length(t.document), t.created_at, t.event_id"
	fromTrustedRoots   = " FROM trusted_roots t JOIN orgs o ON o.id = t.org_id "
)

// scanTrustedRoot reads the trustedRootColumns, followed by the columns in rest.
func scanTrustedRoot(row txn.Scanner, rest ...any) (r txn.Keyed[identity.TrustedRoot], err error) {
	v, size := &r.Row, 0
	err = row.Scan(append([]any{&r.ID, &v.Org, &v.Name, &v.Version, &v.Digest, &size, &v.CreatedAt, &v.Event}, rest...)...)
	v.Removed = size == 0
	return r, err
}

func scanTrustedDocument(row txn.Scanner) (txn.Keyed[identity.TrustedRoot], error) {
	var document []byte
	r, err := scanTrustedRoot(row, &document)
	r.Row.Document = string(document)
	return r, err
}

// latestTrustedRoot selects the versions of trusted roots that no later version replaces.
const latestTrustedRoot = `t.version = (
  SELECT max(l.version) FROM trusted_roots l WHERE l.org_id = t.org_id AND l.name = t.name)`

// trustedRoots returns the trusted roots of an org that are in effect.
func trustedRoots(rd txn.Reader, orgID int64) ([]identity.TrustedRoot, error) {
	rows, err := txn.All(rd, scanTrustedDocument, "SELECT "+trustedRootColumns+", t.document"+fromTrustedRoots+
		"WHERE t.org_id = ? AND "+latestTrustedRoot+" ORDER BY t.id", orgID)
	if err != nil {
		return nil, fmt.Errorf("read trusted roots: %w", err)
	}
	roots := make([]identity.TrustedRoot, len(rows))
	for i, r := range rows {
		roots[i] = r.Row
	}
	return roots, nil
}

// TrustedRoots lists the versions of an org's trusted roots, oldest first, without their documents.
func (sg *Signers) TrustedRoots(ctx context.Context, org string, q txn.Query) (ledger.Page[identity.TrustedRoot],
	error) {
	scan := func(row txn.Scanner) (txn.Keyed[identity.TrustedRoot], error) { return scanTrustedRoot(row) }
	return txn.ListOf(ctx, sg.db, org, "trusted roots", q, scan, "SELECT "+trustedRootColumns+fromTrustedRoots+
		"WHERE t.org_id = ? AND t.id > ? ORDER BY t.id LIMIT ?")
}

// TrustedRoot returns a version of a trusted root with its document; 0 means the one in effect.
func (sg *Signers) TrustedRoot(ctx context.Context, org, name string, version int) (identity.TrustedRoot, error) {
	return txn.Read(ctx, sg.db, txn.ByOrg(org), func(rd txn.Reader) (identity.TrustedRoot, error) {
		r, err := findTrustedRoot(rd, org, name, version)
		if version != 0 {
			return r, txn.Missing(err, "version %d of the trusted root %s not found", version, name)
		}
		if err == nil && r.Removed {
			return r, ledger.Errorf(ledger.CodeNotFound, "trusted root %s was removed in version %d", name, r.Version)
		}
		return r, txn.Missing(err, "trusted root %s not found", name)
	})
}

// findTrustedRoot returns a version of a trusted root; 0 means the highest.
func findTrustedRoot(rd txn.Reader, org, name string, version int) (identity.TrustedRoot, error) {
	where, args := "t.version = ?", []any{org, name, version}
	if version == 0 {
		where, args = latestTrustedRoot, args[:2]
	}
	r, err := scanTrustedDocument(rd.Row("SELECT "+trustedRootColumns+", t.document"+fromTrustedRoots+
		"WHERE o.name = ? AND t.name = ? AND "+where, args...))
	return r.Row, err
}

// SetTrustedRoot stores a document as the next version of a trusted root and returns the version. An
// empty document removes the trusted root. It is a no-op if that is already in effect. Attestations that
// are verified from then on follow it; those that are recorded keep counting.
func (sg *Signers) SetTrustedRoot(ctx context.Context, org, name string, document []byte) (identity.TrustedRoot,
	error) {
	r, err := identity.NewTrustedRoot(name, document, sg.parseRoot)
	if err != nil {
		return r, err
	}
	return txn.Write(ctx, sg.db, sqldb.Write{Org: org}, func(t *txn.Tx) (identity.TrustedRoot, error) {
		orgID, err := t.WritableOrg(org)
		if err != nil {
			return r, err
		}
		before, err := findTrustedRoot(t.Reader, org, r.Name, 0)
		if errors.Is(err, sql.ErrNoRows) {
			before, err = identity.TrustedRoot{Removed: true}, nil
		}
		if err != nil {
			return r, fmt.Errorf("read trusted root: %w", err)
		}
		switch {
		case r.Removed && before.Removed:
			return r, ledger.Errorf(ledger.CodeNotFound, "trusted root %s not found", r.Name)
		case r.Digest == before.Digest:
			return before, nil
		}

		if err := checkTrustedRoots(t, orgID, r, before.Version == 0); err != nil {
			return r, err
		}
		r.Org, r.Version, r.CreatedAt = org, before.Version+1, t.Now
		if err := sg.insertTrustedRoot(t, orgID, &r); err != nil {
			return r, err
		}
		if err := keyringChanged(t, orgID); err != nil {
			return r, err
		}
		a := events.Audited{Action: ledger.AuditTrustedRootSet, Target: r.Name, After: trustedRootFields(r)}
		if before.Version > 0 {
			a.Before = trustedRootFields(before)
		}
		if r.Removed {
			a.Action = ledger.AuditTrustedRootRemoved
		}
		return r, sg.journal.Audit(t, orgID, org, a)
	})
}

// checkTrustedRoots returns an error if an org has too many trusted roots for another version. A
// removal is permitted at any time: bundles of a Sigstore instance that was taken over must be refused.
func checkTrustedRoots(t *txn.Tx, orgID int64, r identity.TrustedRoot, isNew bool) error {
	if r.Removed {
		return nil
	}
	names, versions := 0, 0
	err := t.Row("SELECT count(DISTINCT name), count(*) FROM trusted_roots WHERE org_id = ?", orgID).
		Scan(&names, &versions)
	switch {
	case err != nil:
		return fmt.Errorf("count trusted roots: %w", err)
	case isNew && names >= maxTrustedRoots:
		return ledger.Errorf(ledger.CodeLimitReached, "the org has %d trusted roots, removed ones included: at most %d",
			names, maxTrustedRoots)
	case versions >= maxTrustedVersions:
		return ledger.Errorf(ledger.CodeLimitReached, "the org's trusted roots have %d versions: at most %d", versions,
			maxTrustedVersions)
	}
	return nil
}

// insertTrustedRoot inserts a version with its event.
func (sg *Signers) insertTrustedRoot(t *txn.Tx, orgID int64, r *identity.TrustedRoot) error {
	e := r.Logged()
	var err error
	if e.ID, err = t.NewID(orgID, txn.EventPrefix); err != nil {
		return err
	}
	e.Timestamp, r.Event = t.Now, e.ID
	_, err = t.Exec(`
INSERT INTO trusted_roots (org_id, name, version, digest, document, created_at, event_id) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		orgID, r.Name, r.Version, r.Digest, []byte(r.Document), t.Now, e.ID)
	if err != nil {
		return fmt.Errorf("insert trusted root: %w", err)
	}
	return sg.journal.AppendToOrg(t, orgID, ledger.EventIdentity, e.ID, ledger.Render(e))
}

// trustedRootFields returns the fields of a trusted root that audit events have.
func trustedRootFields(r identity.TrustedRoot) []ledger.Field {
	return []ledger.Field{
		{Name: "version", Value: r.Version},
		{Name: "digest", Value: events.Optional(r.Digest)},
		{Name: "removed", Value: events.Optional(r.Removed)},
	}
}
