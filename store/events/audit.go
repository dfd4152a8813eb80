package events

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/txn"
)

// An Audited is an administrative action on a resource of an org.
type Audited struct {
	Action ledger.AuditAction
	Repo   string // the name of its repo; empty if it has none
	Target string // its ID or name
	// before and after are the fields of the resource. See [ledger.Changes].
	Before, After []ledger.Field
}

// Audit appends the event of an administrative action.
func (j *Journal) Audit(t *txn.Tx, orgID int64, org string, a Audited) error {
	eventID, err := t.NewID(orgID, txn.EventPrefix)
	if err != nil {
		return err
	}
	event, seq, err := j.appendRow(t, orgID, nil, ledger.EventAudit, eventID, ledger.Render(ledger.AuditEvent{
		ID: eventID, Org: org, Action: a.Action, Repo: a.Repo, Target: a.Target, By: t.Actor,
		Changes: ledger.Changes(a.Before, a.After), Timestamp: t.Now,
	}))
	if err != nil {
		return err
	}
	kind, _, _ := strings.Cut(string(a.Action), ".")
	j.rows.audits.Add(orgID, seq, event, kind, string(a.Action), strings.ToLower(a.Repo),
		cmp.Or(t.Actor.Token, t.Actor.Name))
	return j.enqueueToOrg(t, orgID, ledger.EventAudit, event)
}

// AuditIn is audit, for callers that know only the name of the org.
func (j *Journal) AuditIn(t *txn.Tx, org string, a Audited) error {
	orgID, err := t.OrgID(org)
	if err != nil {
		return err
	}
	return j.Audit(t, orgID, org, a)
}

// AuditChange is AuditIn, if the fields of the resource have changed.
func (j *Journal) AuditChange(t *txn.Tx, org string, a Audited) error {
	if len(ledger.Changes(a.Before, a.After)) == 0 {
		return nil
	}
	return j.AuditIn(t, org, a)
}

// Optional returns nil for the zero value: the field is absent then.
func Optional[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

// TextDigest returns the SHA-256 of a text.
func TextDigest(s string) string {
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(s)))
}

// Digest returns the SHA-256 of a value, or nil if the value is empty.
func Digest(value []byte) any {
	if len(value) == 0 {
		return nil
	}
	return TextDigest(string(value))
}

// OptionalList returns a list, or nil if it is empty.
func OptionalList(list []string) any {
	if len(list) == 0 {
		return nil
	}
	return list
}
