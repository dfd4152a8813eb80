package store

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/policy/linking"
	"github.com/ledgerd/ledgerd/ledger/policy/size"
	"github.com/ledgerd/ledgerd/store/access"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/lists"
	"github.com/ledgerd/ledgerd/store/recheck"
	"github.com/ledgerd/ledgerd/store/signers"
	"github.com/ledgerd/ledgerd/store/txn"
	"github.com/ledgerd/ledgerd/store/upkeep"
)

// A Glance is what a look at a database shows of its surroundings, without a server.
type Glance struct {
	// Last is the time of the newest record, by the clock that an operator has accepted if any. It is
	// zero if there is no record.
	Last ledger.Time
	// WebhookURLs are those of active webhooks, at most as many as were asked for.
	WebhookURLs []string
	// CAs are the roots of the CAs that certify CI jobs of orgs that are not deleted, at most as many
	// as were asked for.
	CAs []identity.Identity
	// AnyLinkers are the repos, as ORG/REPO, whose contract says policy.Contract.AnyLinker, at most as
	// many as were asked for.
	AnyLinkers []string
	// LargeContracts are the repos, as ORG/REPO, whose contract is larger than a new one may be, at most
	// as many as were asked for.
	LargeContracts []string
	// Unread are the types of statements that no longer state an outcome, at most as many as were asked for.
	Unread []recheck.UnreadType
	// SameNames are the orgs where signers with one name count as several people only since an
	// upgrade, at most as many as were asked for.
	SameNames []string
	// Backlog is what waits to be done in the background.
	Backlog []Backlog
	// OldClients are the tokens that an earlier version of ledgerd has used in the last 30 days, at most
	// as many as were asked for.
	OldClients []access.TokenClient
}

// Glance returns the latest time of the database, the URLs of active webhooks, the CAs that are in
// use and not revoked, the repos where everybody links artifacts, the orgs where names count twice, what
// waits, and the tokens with clients that are older than the version.
func (s *Store) Glance(ctx context.Context, version string, limit int) (Glance, error) {
	return txn.Read(ctx, s.db, txn.ForWrite(""), func(rd txn.Reader) (g Glance, err error) {
		k, err := upkeep.ReadClock(rd)
		if err != nil {
			return g, err
		}
		g.Last = k.TimeOf(k.Newest)
		g.WebhookURLs, err = txn.All(rd, txn.ScanText,
			"SELECT url FROM webhooks WHERE active = 1 AND deleted_at = 0 ORDER BY id LIMIT ?", limit)
		if err != nil {
			return g, err
		}

		roots, err := txn.All(rd, signers.ScanIdentity, signers.SelectIdentity+`
WHERE i.revoked_at = 0 AND o.deleted_at = 0 AND i.identity_id IN (SELECT identity_id FROM cas WHERE retired_at = 0)
ORDER BY i.id LIMIT ?`, limit)
		for _, root := range roots {
			g.CAs = append(g.CAs, root.Row)
		}
		if err != nil {
			return g, err
		}
		err = activeContracts(rd, func(repo string, c *policy.Contract) {
			if linking.AnyLinker(c) && len(g.AnyLinkers) < limit {
				g.AnyLinkers = append(g.AnyLinkers, repo)
			}
			if size.IsLarge(c) && len(g.LargeContracts) < limit {
				g.LargeContracts = append(g.LargeContracts, repo)
			}
		})
		if err != nil {
			return g, err
		}
		if g.Unread, err = recheck.UnreadTypes(rd, limit); err != nil {
			return g, err
		}
		if g.SameNames, err = orgsWithSameNames(rd, limit); err != nil {
			return g, err
		}
		if g.Backlog, err = backlog.List(rd); err != nil {
			return g, err
		}
		g.OldClients, err = access.OldClients(rd, version, limit)
		return g, err
	})
}

// orgsWithSameNames returns the orgs where signers with one name count as several people only since
// an upgrade.
func orgsWithSameNames(rd txn.Reader, limit int) (orgs []string, err error) {
	type org struct {
		id   int64
		name string
	}
	list, err := txn.All(rd, func(row txn.Scanner) (o org, err error) { return o, row.Scan(&o.id, &o.name) }, `
SELECT id, name FROM orgs o WHERE deleted_at = 0 AND EXISTS (
  SELECT 1 FROM signers s WHERE s.org_id = o.id AND s.distinct_by > 1)
ORDER BY name`)
	for _, o := range list {
		names, err := lists.SameNames(rd, o.id)
		if err != nil {
			return nil, err
		}
		if len(names) > 0 && len(orgs) < limit {
			orgs = append(orgs, o.name)
		}
	}
	return orgs, err
}

// activeContracts calls fn with each repo, as ORG/REPO, and its active contract.
func activeContracts(rd txn.Reader, fn func(repo string, c *policy.Contract)) error {
	known := make(map[string]*policy.Contract) // by digest
	return rd.Each(func(row txn.Scanner) error {
		var repo, digest string
		var text []byte
		if err := row.Scan(&repo, &digest, &text); err != nil {
			return err
		}
		if known[digest] == nil {
			c, err := policy.ParseStored(text)
			if err != nil {
				return fmt.Errorf("decode the contract of %s: %w", repo, err)
			}
			known[digest] = &c
		}
		fn(repo, known[digest])
		return nil
	}, `
SELECT o.name || '/' || r.name, p.digest, p.contract
FROM repos r JOIN orgs o ON o.id = r.org_id JOIN policies p ON p.repo_id = r.id AND p.version = r.policy_version
WHERE r.deleted_at = 0 AND o.deleted_at = 0 ORDER BY o.name, r.name`)
}
