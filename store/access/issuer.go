package access

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/exchange"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

const selectIssuer = `
SELECT i.id, i.issuer_id, o.name, i.url, i.jwks, i.created_at
FROM issuers i JOIN orgs o ON o.id = i.org_id `

func scanIssuer(row txn.Scanner) (txn.Keyed[exchange.Issuer], error) {
	var i txn.Keyed[exchange.Issuer]
	return i, row.Scan(&i.ID, &i.Row.ID, &i.Row.Org, &i.Row.URL, &i.Row.JWKS, &i.Row.CreatedAt)
}

// AddIssuer adds an issuer to an org. It returns CodeAlreadyExists if the org has one with the URL,
// and CodeLimitReached if it has too many.
func (ac *Access) AddIssuer(ctx context.Context, org string, n exchange.NewIssuer) (exchange.Issuer, error) {
	return txn.Write(ctx, ac.db, sqldb.Write{Org: org}, func(t *txn.Tx) (exchange.Issuer, error) {
		orgID, err := t.WritableOrg(org)
		if err != nil {
			return exchange.Issuer{}, err
		}
		var count int
		err = t.Row("SELECT count(*) FROM issuers WHERE org_id = ? AND removed_at = 0", orgID).Scan(&count)
		if err != nil {
			return exchange.Issuer{}, fmt.Errorf("count issuers: %w", err)
		}
		if count >= exchange.MaxIssuers {
			return exchange.Issuer{}, ledger.Errorf(ledger.CodeLimitReached, "org %s already has %d issuers, the maximum",
				org, count)
		}

		id, err := insertIssuer(t, orgID, org, n)
		if err != nil {
			return exchange.Issuer{}, err
		}
		i, err := scanIssuer(t.Row(selectIssuer+"WHERE i.id = ?", id))
		if err != nil {
			return i.Row, fmt.Errorf("read issuer: %w", err)
		}
		return i.Row, ac.journal.Audit(t, orgID, org, events.Audited{
			Action: ledger.AuditIssuerAdded, Target: i.Row.ID, After: issuerFields(i.Row),
		})
	})
}

func insertIssuer(t *txn.Tx, orgID int64, org string, n exchange.NewIssuer) (int64, error) {
	issuerID, err := t.NewID(orgID, txn.IssuerPrefix)
	if err != nil {
		return 0, err
	}
	id, err := t.Insert("INSERT INTO issuers (issuer_id, org_id, url, jwks, created_at) VALUES (?, ?, ?, ?, ?)",
		issuerID, orgID, n.URL, n.JWKS, t.Now)
	if sqldb.ClassOf(err) == sqldb.Duplicate {
		return 0, ledger.Errorf(ledger.CodeAlreadyExists,
			"org %s already has the issuer %s: to replace its keys, remove it first", org, n.URL)
	}
	if err != nil {
		return 0, fmt.Errorf("insert issuer: %w", err)
	}
	return id, nil
}

// issuerFields returns the fields of an issuer that audit events have.
func issuerFields(i exchange.Issuer) []ledger.Field {
	fields := []ledger.Field{{Name: "url", Value: i.URL}, {Name: "jwks_digest"}}
	if i.JWKS != "" {
		fields[1].Value = events.TextDigest(i.JWKS)
	}
	return fields
}

// Issuers lists the issuers of an org, oldest first.
func (ac *Access) Issuers(ctx context.Context, org string, q txn.Query) (ledger.Page[exchange.Issuer], error) {
	return txn.ListOf(ctx, ac.db, org, "issuers", q, scanIssuer,
		selectIssuer+"WHERE i.org_id = ? AND i.removed_at = 0 AND i.id > ? ORDER BY i.id LIMIT ?")
}

// IssuerByURL returns the issuer of an org with a URL. If the org does not exist or has no such
// issuer, the error has CodeNotFound.
func (ac *Access) IssuerByURL(ctx context.Context, org, url string) (exchange.Issuer, error) {
	return txn.ReadLoose(ctx, ac.db, txn.ForCheck(), func(rd txn.Reader) (exchange.Issuer, error) {
		i, err := issuerByURL(rd, org, url)
		return i.Row, err
	})
}

func issuerByURL(rd txn.Reader, org, url string) (txn.Keyed[exchange.Issuer], error) {
	i, err := scanIssuer(rd.Row(selectIssuer+"WHERE o.name = ? AND i.url = ? AND i.removed_at = 0", org, url))
	return i, txn.Missing(err, "org %s has no issuer %.200q", org, url)
}
