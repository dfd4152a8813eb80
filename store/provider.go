package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger/member"
)

// checkProvider returns a field error unless an org may have members and rules of an issuer.
func (rd reader) checkProvider(p member.Providers, orgID int64, org, issuer string) error {
	isListed, err := rd.isListed(orgID, issuer)
	if err != nil {
		return err
	}
	return p.Check(issuer, org, isListed)
}

// mayUse reports whether an org may use the provider with an issuer.
func (rd reader) mayUse(p member.Providers, orgID int64, org, issuer string) (bool, error) {
	isListed, err := rd.isListed(orgID, issuer)
	return err == nil && p.MayUse(issuer, org, isListed), err
}

// isListed reports whether the migration has listed an org as one that uses an issuer.
func (rd reader) isListed(orgID int64, issuer string) (isListed bool, err error) {
	err = rd.Row("SELECT EXISTS (SELECT 1 FROM provider_orgs WHERE issuer = ? AND org_id = ?)", issuer, orgID).
		Scan(&isListed)
	if err != nil {
		return false, fmt.Errorf("read the orgs of a provider: %w", err)
	}
	return isListed, nil
}

// ListedOrgs returns the names of orgs that may use the provider with an issuer if the host names no orgs for
// it, in order, at most limit.
func (s *Store) ListedOrgs(ctx context.Context, issuer string, limit int) ([]string, error) {
	return read(ctx, s, forWrite(""), func(rd reader) ([]string, error) { return rd.listedOrgs(issuer, limit) })
}

func (rd reader) listedOrgs(issuer string, limit int) ([]string, error) {
	orgs, err := all(rd, scanText, `
SELECT o.name FROM provider_orgs p JOIN orgs o ON o.id = p.org_id WHERE p.issuer = ? AND o.deleted_at = 0
ORDER BY o.name LIMIT ?`, issuer, limit)
	if err != nil {
		return nil, fmt.Errorf("read the orgs of a provider: %w", err)
	}
	return orgs, nil
}

const (
	// maxOffers is how many orgs Offers returns, and maxAdmitting how many members, rules and orgs it reads.
	maxOffers    = 100
	maxAdmitting = 20_000
)

// Offers returns the orgs that an account can sign in to, at most 100; see [member.Offers].
func (s *Store) Offers(ctx context.Context, a member.Account) ([]member.Offer, error) {
	return readLoose(ctx, s, forCheck(), func(rd reader) ([]member.Offer, error) { return rd.offers(s.providers, a) })
}

func (rd reader) offers(p member.Providers, a member.Account) ([]member.Offer, error) {
	standings, err := rd.standings(a)
	if err != nil {
		return nil, err
	}
	listed, err := rd.listedOrgs(a.Issuer, maxAdmitting)
	if err != nil {
		return nil, err
	}
	for i, known := range standings {
		_, isListed := slices.BinarySearch(listed, known.Org)
		standings[i].MayUse = p.MayUse(a.Issuer, known.Org, isListed)
	}
	offers := member.Offers(standings, a, rd.now)
	return offers[:min(len(offers), maxOffers)], nil
}

// standings returns what each org knows about an account, without MayUse.
func (rd reader) standings(a member.Account) (standings []member.Standing, err error) {
	members, err := all(rd, scanMember, selectMember+`
WHERE m.issuer = ? AND m.subject = ? AND o.deleted_at = 0 LIMIT ?`, a.Issuer, a.Subject, maxAdmitting)
	if err != nil {
		return nil, fmt.Errorf("read the memberships: %w", err)
	}
	rules, err := all(rd, scanMemberRuleRow, selectMemberRule+`
WHERE r.issuer = ? AND r.removed_at = 0 AND o.deleted_at = 0 ORDER BY r.org_id, r.id LIMIT ?`, a.Issuer, maxAdmitting)
	if err != nil {
		return nil, fmt.Errorf("read the rules of members: %w", err)
	}

	known, ofOrg := make(map[string]member.Member), make(map[string][]member.Rule)
	for _, m := range members {
		known[m.row.Org], ofOrg[m.row.Org] = m.row, nil
	}
	for _, r := range rules {
		ofOrg[r.Org] = append(ofOrg[r.Org], r)
	}
	for org, rules := range ofOrg {
		standings = append(standings, member.Standing{Org: org, Member: known[org], Rules: rules})
	}
	return standings, nil
}

// endSignInsBatch is the number of sign-ins that one write ends.
const endSignInsBatch = 500

// EndSignInsOfProviders ends the sign-ins of members whose org may no longer use the provider.
func (s *Store) EndSignInsOfProviders(ctx context.Context) error {
	type use struct {
		orgID       int64
		org, issuer string
		isListed    bool
	}
	scan := func(row scanner) (u use, err error) { return u, row.Scan(&u.orgID, &u.org, &u.issuer, &u.isListed) }
	uses, err := read(ctx, s, forWrite(""), func(rd reader) ([]use, error) {
		return all(rd, scan, `
SELECT DISTINCT o.id, o.name, m.issuer,
  EXISTS (SELECT 1 FROM provider_orgs p WHERE p.issuer = m.issuer AND p.org_id = o.id)
FROM tokens t JOIN members m ON m.id = t.member_id JOIN orgs o ON o.id = t.org_id
WHERE t.is_sign_in = 1 AND t.revoked_at = 0 AND t.expires_at > ?`, rd.now)
	})
	if err != nil {
		return fmt.Errorf("read the sign-ins: %w", err)
	}

	for _, u := range uses {
		if s.providers.MayUse(u.issuer, u.org, u.isListed) {
			continue
		}
		err := s.repeatFor(ctx, []int64{u.orgID}, func(t *tx) (last bool, err error) {
			return t.endSignInsOf(u.orgID, u.org, u.issuer)
		})
		if err != nil {
			return fmt.Errorf("end the sign-ins of org %s with %s: %w", u.org, u.issuer, err)
		}
	}
	return nil
}

// endSignInsOf ends sign-ins to an org with an issuer. It reports whether there are no more.
func (t *tx) endSignInsOf(orgID int64, org, issuer string) (last bool, err error) {
	tokens, err := all(t.reader, scanToken, selectToken+`
WHERE t.org_id = ? AND t.is_sign_in = 1 AND t.revoked_at = 0 AND t.expires_at > ? AND m.issuer = ?
ORDER BY t.id LIMIT ?`, orgID, t.now, issuer, endSignInsBatch)
	for _, token := range tokens {
		if err == nil {
			err = t.endSignIn(orgID, org, token)
		}
	}
	return len(tokens) < endSignInsBatch, err
}
