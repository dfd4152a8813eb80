package access

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/store/txn"
)

// checkProvider returns a field error unless an org may have members and rules of an issuer.
func checkProvider(rd txn.Reader, p member.Providers, orgID int64, org, issuer string) error {
	isListed, err := isListed(rd, orgID, issuer)
	if err != nil {
		return err
	}
	return p.Check(issuer, org, isListed)
}

// mayUse reports whether an org may use the provider with an issuer.
func mayUse(rd txn.Reader, p member.Providers, orgID int64, org, issuer string) (bool, error) {
	isListed, err := isListed(rd, orgID, issuer)
	return err == nil && p.MayUse(issuer, org, isListed), err
}

// isListed reports whether the migration has listed an org as one that uses an issuer.
func isListed(rd txn.Reader, orgID int64, issuer string) (isListed bool, err error) {
	err = rd.Row("SELECT EXISTS (SELECT 1 FROM provider_orgs WHERE issuer = ? AND org_id = ?)", issuer, orgID).
		Scan(&isListed)
	if err != nil {
		return false, fmt.Errorf("read the orgs of a provider: %w", err)
	}
	return isListed, nil
}

// ListedOrgs returns the names of orgs that may use the provider with an issuer if the host names no orgs for
// it, in order, at most limit.
func (ac *Access) ListedOrgs(ctx context.Context, issuer string, limit int) ([]string, error) {
	return txn.Read(ctx, ac.db, txn.ForWrite(""), func(rd txn.Reader) ([]string, error) {
		return listedOrgs(rd, issuer, limit)
	})
}

func listedOrgs(rd txn.Reader, issuer string, limit int) ([]string, error) {
	orgs, err := txn.All(rd, txn.ScanText, `
SELECT o.name FROM provider_orgs p JOIN orgs o ON o.id = p.org_id WHERE p.issuer = ? AND o.deleted_at = 0
ORDER BY o.name LIMIT ?`, issuer, limit)
	if err != nil {
		return nil, fmt.Errorf("read the orgs of a provider: %w", err)
	}
	return orgs, nil
}
