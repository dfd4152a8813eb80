package access

import (
	"context"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/ca"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/signers"
	"github.com/ledgerd/ledgerd/store/txn"
)

// certificateFields returns the fields of a certificate of a CI job that audit events have.
func certificateFields(c signers.Certificate, e Exchange) []ledger.Field {
	return append(c.Fields(), []ledger.Field{
		{Name: "rule", Value: e.Rule.ID},
		{Name: "issuer", Value: e.Claims.Issuer},
		{Name: "subject", Value: e.Claims.Subject()},
		{Name: "claims_digest", Value: e.Claims.Digest()},
		{Name: "run_url", Value: events.Optional(e.Claims.RunURL())},
	}...)
}

// LogCertificate logs a certificate for a token of an issuer, before the job gets it. If hash is
// not nil, it also creates the API token that the rule gives; hash is the SHA-256 of its secret.
// It returns CodeTokenUsed if the token of the issuer was used before, and CodeRevokedIdentity if
// the CA is no longer in use.
func (ac *Access) LogCertificate(ctx context.Context, org string, c signers.Certificate, e Exchange,
	hash *[32]byte) error {
	return ac.db.Change(ctx, org, func(t *txn.Tx) error {
		orgID, err := t.WritableOrg(org)
		if err != nil {
			return err
		}
		if err := signers.CheckInUse(t.Reader, org, ca.Jobs, c.CA); err != nil {
			return err
		}
		rule, err := ruleInForce(t, orgID, e.Rule.ID)
		if err != nil {
			return err
		}

		if err := use(t, orgID, e.Claims); err != nil {
			return err
		}
		if hash != nil {
			if _, err := ac.exchange(t, orgID, org, rule, e, *hash); err != nil {
				return err
			}
		}
		return ac.journal.Audit(t, orgID, org, events.Audited{
			Action: ledger.AuditCertificateIssued, Target: c.Serial, After: certificateFields(c, e),
		})
	})
}
