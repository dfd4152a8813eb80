package store

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store/txn"
)

// An audited is an administrative action on a resource of an org.
type audited struct {
	action ledger.AuditAction
	repo   string // the name of its repo; empty if it has none
	target string // its ID or name
	// before and after are the fields of the resource. See [ledger.Changes].
	before, after []ledger.Field
}

// audit appends the event of an administrative action.
func (t *tx) audit(orgID int64, org string, a audited) error {
	eventID, err := t.kernel.NewID(orgID, txn.EventPrefix)
	if err != nil {
		return err
	}
	event, seq, err := t.appendRow(orgID, nil, ledger.EventAudit, eventID, ledger.Render(ledger.AuditEvent{
		ID: eventID, Org: org, Action: a.action, Repo: a.repo, Target: a.target, By: t.kernel.Actor,
		Changes: ledger.Changes(a.before, a.after), Timestamp: t.Now,
	}))
	if err != nil {
		return err
	}
	kind, _, _ := strings.Cut(string(a.action), ".")
	t.batch.rows.audits.Add(orgID, seq, event, kind, string(a.action), strings.ToLower(a.repo),
		cmp.Or(t.kernel.Actor.Token, t.kernel.Actor.Name))
	return t.enqueueToOrg(orgID, ledger.EventAudit, event)
}

// auditIn is audit, for callers that know only the name of the org.
func (t *tx) auditIn(org string, a audited) error {
	orgID, err := t.OrgID(org)
	if err != nil {
		return err
	}
	return t.audit(orgID, org, a)
}

// auditChange is auditIn, if the fields of the resource have changed.
func (t *tx) auditChange(org string, a audited) error {
	if len(ledger.Changes(a.before, a.after)) == 0 {
		return nil
	}
	return t.auditIn(org, a)
}

// The functions below return the fields of resources that audit events have. Secrets are not
// among them.

// fieldsVersion is the version of the fields that audit events have. The event of the creation of an org says
// it, or else the last of the events about what there was before: see logSettings. From then on, a resource
// has no other fields than those in its events.
const fieldsVersion = 1

func orgFields(o ledger.Org) []ledger.Field {
	return []ledger.Field{{Name: "log_public", Value: o.LogPublic}}
}

func repoFields(r ledger.Repo) []ledger.Field {
	return []ledger.Field{
		{Name: "default_branch", Value: r.DefaultBranch},
		{Name: "web_url", Value: optional(r.WebURL)},
		{Name: "forge", Value: optional(r.Forge)},
		{Name: "retention", Value: optional(r.Retention)},
	}
}

func tokenFields(t ledger.Token) []ledger.Field {
	return []ledger.Field{
		{Name: "name", Value: t.Name},
		{Name: "scope", Value: t.Scope},
		{Name: "expires_at", Value: optional(t.ExpiresAt)},
		{Name: "repos", Value: optionalList(t.Repos)},
	}
}

// grantFields returns tokenFields with what else decides about what a token may do. hash is the SHA-256 of its
// secret. The digest of it reveals nothing, since secrets are random.
func grantFields(t ledger.Token, hash []byte) []ledger.Field {
	return append(tokenFields(t),
		ledger.Field{Name: "rule", Value: optional(t.Rule)},
		ledger.Field{Name: "member", Value: optional(t.Member)},
		ledger.Field{Name: "secret_digest", Value: digestOf(hash)},
	)
}

func identityFields(i identity.Identity) []ledger.Field {
	return []ledger.Field{
		{Name: "kind", Value: i.Kind},
		{Name: "dn", Value: i.DN},
		{Name: "email", Value: optional(i.Email)},
		{Name: "emails", Value: optionalList(i.Emails)},
		{Name: "logins", Value: optionalList(i.Logins)},
		{Name: "may", Value: optionalList(i.May)},
		{Name: "dn_pattern", Value: optional(i.DNPattern)},
		{Name: "sigstore", Value: optional(i.Sigstore)},
		{Name: "fingerprint", Value: i.Fingerprint},
		{Name: "revoked_at", Value: optional(i.RevokedAt)},
		{Name: "distrusted_since", Value: optional(i.DistrustedSince)},
		{Name: "distinct", Value: optional(i.Distinct)},
	}
}

func trustedRootFields(r identity.TrustedRoot) []ledger.Field {
	return []ledger.Field{
		{Name: "version", Value: r.Version},
		{Name: "digest", Value: optional(r.Digest)},
		{Name: "removed", Value: optional(r.Removed)},
	}
}

func policyFields(version int, digest string) []ledger.Field {
	return []ledger.Field{{Name: "version", Value: version}, {Name: "digest", Value: digest}}
}

// webhookFields has the URL without its path and query, which are often secret, and the digest of the signing
// secret, if it is known. The server has created it from random bytes.
func webhookFields(w ledger.Webhook, secret string) []ledger.Field {
	return []ledger.Field{
		{Name: "url", Value: w.Origin()},
		{Name: "url_digest", Value: textDigest(w.URL)},
		{Name: "events", Value: w.Events},
		{Name: "active", Value: w.Active},
		{Name: "description", Value: optional(w.Description)},
		{Name: "secret_digest", Value: digestOf([]byte(secret))},
	}
}

// textDigest returns the SHA-256 of a text.
func textDigest(s string) string {
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(s)))
}

// digestOf returns the SHA-256 of a value; nil if there is none.
func digestOf(value []byte) any {
	if len(value) == 0 {
		return nil
	}
	return textDigest(string(value))
}

// optional returns nil for the zero value: the field is absent then.
func optional[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

func optionalList(list []string) any {
	if len(list) == 0 {
		return nil
	}
	return list
}
