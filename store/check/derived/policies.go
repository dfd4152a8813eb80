package derived

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// checkPolicies checks the contracts of a repo: their digests, and the events of their versions.
// Versions that were applied since the check of the events are left out.
func (o *Org) checkPolicies(ctx context.Context, r repo) error {
	type version struct {
		number   int64
		digest   string
		contract []byte
		seq      int64              // of its event; -1 if it has none
		said     ledger.PolicyEvent // what the row says of its event
	}
	logged := o.policies[r.id] // by version
	next, active, isChanging := int64(1), "", false
	for {
		var page []version
		err := o.Read(ctx, func(conn *sqldb.Conn) (err error) {
			page, err = sqldb.All(conn, func(row sqldb.Scanner) (v version, err error) {
				return v, row.Scan(&v.number, &v.digest, &v.contract, &v.seq, &v.said.ID, &v.said.Timestamp,
					&v.said.ChangedBy)
			}, `
SELECT p.version, p.digest, p.contract, coalesce(e.seq, -1), coalesce(e.event_id, ''), p.created_at, p.created_by
FROM policies p LEFT JOIN events e ON e.id = p.event
WHERE p.repo_id = ? AND p.version >= ? ORDER BY p.version LIMIT 20`, r.id, next)
			return err
		})
		if err != nil {
			return err
		}
		for _, v := range page {
			if isChanging = v.seq >= o.End; isChanging {
				break
			}
			row := fmt.Sprintf("policy %d of %s", v.number, r.name)
			if v.number != next {
				o.Problemf(verify.CheckPolicy, o.Name, row, "the version before is missing")
			}
			next, active = v.number+1, v.digest
			said, isLogged := logged[v.number]
			if err := contractIs(v.contract, v.digest, said); err != nil {
				o.Problemf(verify.CheckPolicy, o.Name, row, "%v", err)
			} else if v.number > 1 && !isLogged {
				o.Problemf(verify.CheckPolicy, o.Name, row, "the log has no event of this version")
			}
			o.changeOf(row, v.said, said)
			delete(logged, v.number)
		}
		if len(page) == 0 || isChanging {
			break
		}
	}

	for number := range logged {
		row := fmt.Sprintf("policy %d of %s", number, r.name)
		o.Problemf(verify.CheckPolicy, o.Name, row, "there is an event of the version, and no row")
	}
	if !isChanging && (r.policyVersion != next-1 || r.policyDigest != active) {
		o.Problemf(verify.CheckPolicy, o.Name, "repo "+r.name, "version %d (%s) is active, and the last is %d (%s)",
			r.policyVersion, r.policyDigest, next-1, active)
	}
	return nil
}

// contractIs checks that a stored contract has the digest in its row, and is the one in its event, which is
// nil if the log has none.
func contractIs(stored []byte, says string, logged *ledger.PolicyEvent) error {
	sum := sha256.Sum256(stored)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	if err := verify.Digested(digest, says); err != nil {
		return err
	}
	contract, err := policy.ParseStored(stored)
	if err != nil {
		return fmt.Errorf("the contract cannot be read: %w", err)
	}
	return verify.Contract(digest, contract.Rules, logged)
}

// changeOf compares the event, the author and the time in the row of a contract with those in the log. said is
// nil if the log has no event of the version. Rows of early releases name no event.
func (o *Org) changeOf(row string, has ledger.PolicyEvent, said *ledger.PolicyEvent) {
	switch {
	case said == nil && has.ID != "":
		o.Problemf(verify.CheckPolicy, o.Name, row, "the row has the event %s, which is not one of the version", has.ID)
	case said == nil:
	case has.ID != "" && has.ID != said.ID, has.Timestamp != said.Timestamp, has.ChangedBy != said.ChangedBy:
		const text = "by the row and its event %q, %s has changed it at %s, and by event %q %s at %s"
		o.Problemf(verify.CheckPolicy, o.Name, row, text, has.ID, has.ChangedBy, has.Timestamp, said.ID, said.ChangedBy,
			said.Timestamp)
	}
}
