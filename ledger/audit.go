package ledger

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// An AuditAction is what an administrator did: the kind of resource, a period, and the verb.
type AuditAction string

// The administrative actions.
const (
	AuditOrgCreated    AuditAction = "org.created"
	AuditOrgChanged    AuditAction = "org.changed"
	AuditOrgRenamed    AuditAction = "org.renamed"
	AuditOrgArchived   AuditAction = "org.archived"
	AuditOrgUnarchived AuditAction = "org.unarchived"
	AuditOrgDeleted    AuditAction = "org.deleted"
	AuditOrgPurged     AuditAction = "org.purged"

	AuditRepoCreated    AuditAction = "repo.created"
	AuditRepoChanged    AuditAction = "repo.changed"
	AuditRepoRenamed    AuditAction = "repo.renamed"
	AuditRepoArchived   AuditAction = "repo.archived"
	AuditRepoUnarchived AuditAction = "repo.unarchived"
	AuditRepoDeleted    AuditAction = "repo.deleted"
	AuditRepoPurged     AuditAction = "repo.purged"

	AuditTokenCreated   AuditAction = "token.created"
	AuditTokenRevoked   AuditAction = "token.revoked"
	AuditTokenExchanged AuditAction = "token.exchanged" // for one of a CI job

	AuditIssuerAdded   AuditAction = "issuer.added"
	AuditIssuerRemoved AuditAction = "issuer.removed"

	AuditExchangeRuleCreated AuditAction = "exchange_rule.created"
	AuditExchangeRuleRemoved AuditAction = "exchange_rule.removed"

	AuditSessionCreated AuditAction = "session.created" // somebody signed in
	AuditSessionEnded   AuditAction = "session.ended"   // and out

	AuditMemberAdded       AuditAction = "member.added" // or admitted by a rule
	AuditMemberChanged     AuditAction = "member.changed"
	AuditMemberRuleCreated AuditAction = "member_rule.created"
	AuditMemberRuleRemoved AuditAction = "member_rule.removed"

	AuditPasskeyAdded   AuditAction = "passkey.added"
	AuditPasskeyRemoved AuditAction = "passkey.removed"

	AuditIdentityAdded      AuditAction = "identity.added"
	AuditIdentityChanged    AuditAction = "identity.changed"
	AuditIdentityRevoked    AuditAction = "identity.revoked"
	AuditIdentityDistrusted AuditAction = "identity.distrusted"

	AuditTrustedRootSet     AuditAction = "trusted_root.set"
	AuditTrustedRootRemoved AuditAction = "trusted_root.removed"

	AuditCertificateIssued AuditAction = "certificate.issued" // to a CI job or a person

	AuditPolicyApplied AuditAction = "policy.applied"

	AuditWebhookCreated     AuditAction = "webhook.created"
	AuditWebhookChanged     AuditAction = "webhook.changed"
	AuditWebhookRotated     AuditAction = "webhook.rotated"
	AuditWebhookDeleted     AuditAction = "webhook.deleted"
	AuditWebhookPinged      AuditAction = "webhook.pinged"
	AuditWebhookReplayed    AuditAction = "webhook.replayed"
	AuditWebhookRedelivered AuditAction = "webhook.redelivered"

	AuditExceptionGranted AuditAction = "exception.granted"
	AuditExceptionEnded   AuditAction = "exception.ended"

	AuditBaselineSet AuditAction = "baseline.set" // of an environment

	AuditCommitCorrected AuditAction = "commit.corrected"

	AuditLogReplaced      AuditAction = "log.replaced"      // a new epoch of the transparency log began
	AuditDatabaseRestored AuditAction = "database.restored" // from a backup
	AuditDatabaseBaseline AuditAction = "database.baseline" // what there was when a release began to log it
)

// AuditActions lists all administrative actions.
func AuditActions() []AuditAction {
	return []AuditAction{
		AuditOrgCreated, AuditOrgChanged, AuditOrgRenamed, AuditOrgArchived, AuditOrgUnarchived, AuditOrgDeleted,
		AuditOrgPurged,
		AuditRepoCreated, AuditRepoChanged, AuditRepoRenamed, AuditRepoArchived, AuditRepoUnarchived, AuditRepoDeleted,
		AuditRepoPurged,
		AuditTokenCreated, AuditTokenRevoked, AuditTokenExchanged, AuditIssuerAdded, AuditIssuerRemoved,
		AuditExchangeRuleCreated, AuditExchangeRuleRemoved, AuditSessionCreated, AuditSessionEnded,
		AuditMemberAdded, AuditMemberChanged, AuditMemberRuleCreated, AuditMemberRuleRemoved,
		AuditPasskeyAdded, AuditPasskeyRemoved,
		AuditIdentityAdded, AuditIdentityChanged, AuditIdentityRevoked, AuditIdentityDistrusted,
		AuditTrustedRootSet, AuditTrustedRootRemoved, AuditCertificateIssued, AuditPolicyApplied,
		AuditWebhookCreated, AuditWebhookChanged, AuditWebhookRotated, AuditWebhookDeleted, AuditWebhookPinged,
		AuditWebhookReplayed, AuditWebhookRedelivered,
		AuditExceptionGranted, AuditExceptionEnded, AuditBaselineSet, AuditCommitCorrected, AuditLogReplaced,
		AuditDatabaseRestored, AuditDatabaseBaseline,
	}
}

// ParseAuditAction parses an action, or the kind of resource of several, such as token.
func ParseAuditAction(name string) (AuditAction, error) {
	kinds := []string{}
	for _, action := range AuditActions() {
		kind, _, _ := strings.Cut(string(action), ".")
		if name == string(action) || name == kind {
			return AuditAction(name), nil
		}
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return "", fmt.Errorf("%s is not an administrative action (use %s, or one with its verb, such as %s)",
		text.Quote(name), strings.Join(kinds, ", "), AuditTokenCreated)
}

// IsKind reports whether the action stands for all actions on a kind of resource.
func (a AuditAction) IsKind() bool { return !strings.Contains(string(a), ".") }

// How requests come.
const (
	ViaAPI  = "api"
	ViaWeb  = "web"
	ViaHost = "host" // a command on the host
)

// An Actor is who does something, and from where.
type Actor struct {
	// Name is the name of the token, "host" for the administrator of the host, and "ledgerd" for
	// the server itself.
	Name string `json:"name"`
	// Token is the ID of the token; empty for others.
	Token string `json:"token,omitzero"`
	// Via is how the request came: ViaAPI, ViaWeb or ViaHost.
	Via string `json:"via,omitzero"`
	// User is the user of the operating system who ran a command on the host.
	User string `json:"user,omitzero"`
	// Address is the IP address of the client; empty if it is not known.
	Address string `json:"address,omitzero"`
}

// Who returns the name of the actor with the ID of the token or the user of the host, for people.
func (a Actor) Who() string {
	if detail := cmp.Or(a.Token, a.User); detail != "" {
		return a.Name + " (" + detail + ")"
	}
	return a.Name
}

// Where returns how the request came and the address of the client, for people.
func (a Actor) Where() string { return strings.TrimSpace(a.Via + " " + a.Address) }

// An AuditEvent reports an administrative action. It is an event of the org. Only
// administrators can read it.
type AuditEvent struct {
	ID     string      `json:"id"`
	Type   EventType   `json:"type"` // set by Render
	Org    string      `json:"org"`
	Action AuditAction `json:"action"`
	// Repo is the repo of the resource; empty if it has none.
	Repo string `json:"repo,omitzero"`
	// Target is the ID or the name of the resource.
	Target string `json:"target"`
	By     Actor  `json:"by"`
	// Changes has the fields of the resource that changed. It is empty, not nil, if none did.
	Changes   []AuditChange `json:"changes"`
	Timestamp Time          `json:"timestamp"`
}

// An AuditChange is a field of a resource with its values, as JSON. Before is absent if the
// resource was created, or did not have the field; After, if it no longer has it.
type AuditChange struct {
	Field  string          `json:"field"`
	Before json.RawMessage `json:"before,omitzero"`
	After  json.RawMessage `json:"after,omitzero"`
}

// String returns the change for people, such as "scope: read → write".
func (c AuditChange) String() string {
	switch before, after := AuditText(c.Before), AuditText(c.After); {
	case c.Before == nil:
		return c.Field + ": " + after
	case c.After == nil:
		return c.Field + ": " + before + " → none"
	default:
		return c.Field + ": " + before + " → " + after
	}
}

// AuditText returns a value of a change for people: a text without quotes, and others as JSON.
func AuditText(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) == nil && s != "" {
		return s
	}
	return string(value)
}

// EventType returns EventAudit.
func (AuditEvent) EventType() EventType { return EventAudit }

func (e AuditEvent) typed() Event {
	e.Type = e.EventType()
	if e.Changes == nil {
		e.Changes = []AuditChange{}
	}
	return e
}

// A Field is a field of a resource, with its value. An absent field has the value nil.
type Field struct {
	Name  string
	Value any
}

// maxAuditValue is the maximum size of a value in an audit event, in bytes of JSON.
const maxAuditValue = 4 << 10

// Changes returns the fields whose values differ. Both lists have the same fields in the same
// order; one that is nil is that of a resource which does not exist.
func Changes(before, after []Field) []AuditChange {
	changes := []AuditChange{}
	for i := range max(len(before), len(after)) {
		var c AuditChange
		if before != nil {
			c.Field, c.Before = before[i].Name, auditValue(before[i].Value)
		}
		if after != nil {
			c.Field, c.After = after[i].Name, auditValue(after[i].Value)
		}
		if !bytes.Equal(c.Before, c.After) {
			changes = append(changes, c)
		}
	}
	return changes
}

// auditValue returns a value as JSON. One that is too large is replaced by its digest.
func auditValue(v any) json.RawMessage {
	if v == nil {
		return nil
	}
	value := text.JSON(v)
	if len(value) > maxAuditValue {
		value = text.JSON(fmt.Sprintf("sha256:%x (%d bytes)", sha256.Sum256(value), len(value)))
	}
	return value
}
