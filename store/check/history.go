package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// history checks what the row of an attestation has of what was before it: the e-mail addresses of its
// signer, as of the events before, and when it finished. That is when an earlier one of the person finished,
// if it is later and says the same.
func (c *checker) history(ctx context.Context, o *org, e *event) error {
	a := e.evidence
	if a == nil || !a.isRead {
		return nil
	}
	if want, ok := o.signers.Emails(a.identity, a.certified); ok && !slices.Equal(a.emails, want) {
		c.Problemf(verify.CheckRecord, o.name, a.row(),
			"the row has the e-mail addresses %q of the signer, and identity and "+
				"certificate %q", strings.Join(a.emails, " "), strings.Join(want, " "))
	}
	if a.rollback != nil {
		o.derived.AddRollback(a.id, a.rollback.To.SHA)
	}
	if !a.isLate {
		return nil
	}
	if _, ok := ledger.EnvironmentOf(a.predicate); ok {
		o.derived.AddFinished(a.id, a.saidAt)
	}

	var isExplained bool
	err := c.Read(ctx, func(conn *sqldb.Conn) error {
		return conn.Row(`
SELECT EXISTS (SELECT 1 FROM attestations a /*+ordered*/ JOIN attestations b ON b.commit_id = a.commit_id
  AND b.predicate_id = a.predicate_id AND b.slot = a.slot AND b.finished_at = a.finished_at AND b.id < a.id
  WHERE a.id = ?)`, a.id).Scan(&isExplained)
	})
	if err != nil {
		return fmt.Errorf("read the attestation before: %w", err)
	}
	if !isExplained {
		c.Problemf(verify.CheckRecord, o.name, a.row(),
			"the row says that it finished at %s, and neither it nor one before says so", a.finishedAt)
	}
	return nil
}
