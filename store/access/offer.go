package access

import (
	"context"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/store/txn"
)

const (
	// maxOffers is how many orgs Offers returns, and maxAdmitting how many members, rules and orgs it reads.
	maxOffers    = 100
	maxAdmitting = 20_000
)

// Offers returns the orgs that an account can sign in to, at most 100; see [member.Offers].
func (ac *Access) Offers(ctx context.Context, a member.Account) ([]member.Offer, error) {
	return txn.ReadLoose(ctx, ac.db, txn.ForCheck(), func(rd txn.Reader) ([]member.Offer, error) {
		return offers(rd, ac.providers, a)
	})
}

func offers(rd txn.Reader, p member.Providers, a member.Account) ([]member.Offer, error) {
	standings, err := standings(rd, a)
	if err != nil {
		return nil, err
	}
	listed, err := listedOrgs(rd, a.Issuer, maxAdmitting)
	if err != nil {
		return nil, err
	}
	for i, known := range standings {
		_, isListed := slices.BinarySearch(listed, known.Org)
		standings[i].MayUse = p.MayUse(a.Issuer, known.Org, isListed)
	}
	offers := member.Offers(standings, a, rd.Now)
	return offers[:min(len(offers), maxOffers)], nil
}

// standings returns what each org knows about an account, without MayUse.
func standings(rd txn.Reader, a member.Account) (standings []member.Standing, err error) {
	members, err := txn.All(rd, scanMember, selectMember+`
WHERE m.issuer = ? AND m.subject = ? AND o.deleted_at = 0 LIMIT ?`, a.Issuer, a.Subject, maxAdmitting)
	if err != nil {
		return nil, fmt.Errorf("read the memberships: %w", err)
	}
	rules, err := txn.All(rd, scanMemberRuleRow, selectMemberRule+`
WHERE r.issuer = ? AND r.removed_at = 0 AND o.deleted_at = 0 ORDER BY r.org_id, r.id LIMIT ?`, a.Issuer, maxAdmitting)
	if err != nil {
		return nil, fmt.Errorf("read the rules of members: %w", err)
	}

	known, ofOrg := make(map[string]member.Member), make(map[string][]member.Rule)
	for _, m := range members {
		known[m.Row.Org], ofOrg[m.Row.Org] = m.Row, nil
	}
	for _, r := range rules {
		ofOrg[r.Org] = append(ofOrg[r.Org], r)
	}
	for org, rules := range ofOrg {
		standings = append(standings, member.Standing{Org: org, Member: known[org], Rules: rules})
	}
	return standings, nil
}
