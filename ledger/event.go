package ledger

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger/internal/text"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// An EventType is the type of an event.
type EventType string

// The event types.
const (
	EventAttestation EventType = "attestation" // a new signed attestation is recorded
	EventState       EventType = "state"       // a commit moves between two states
	EventPolicy      EventType = "policy"      // a policy contract is updated
	EventRadar       EventType = "radar"       // the radar finds an overlap
	EventViolation   EventType = "violation"   // a deployment that does not count is recorded, or made good
	EventCommit      EventType = "commit"      // what is known of a commit changes
	EventKey         EventType = "key"         // a key of the org's log or receipts is added or revoked
	EventIdentity    EventType = "identity"    // an identity that the org trusts is added, changed or revoked
	EventAudit       EventType = "audit"       // an administrator does something
	EventStanding    EventType = "standing"    // the standing of what runs changes
)

// EventTypes lists all event types. The database has sets of them as bits in this order.
func EventTypes() []EventType {
	return []EventType{
		EventAttestation, EventState, EventPolicy, EventRadar, EventViolation, EventCommit, EventKey, EventIdentity,
		EventAudit, EventStanding,
	}
}

// IsOfOrg reports whether events of the type are about an org, and not about a repo.
func (t EventType) IsOfOrg() bool { return t == EventKey || t == EventIdentity || t == EventAudit }

// Scope returns the scope that reading events of the type needs.
func (t EventType) Scope() Scope {
	if t == EventAudit {
		return Admin
	}
	return Read
}

// EventTypesFor lists the event types that a scope may read.
func EventTypesFor(s Scope) []EventType {
	return slices.DeleteFunc(EventTypes(), func(t EventType) bool { return t.Scope() > s })
}

// DefaultEventTypes lists the event types that streams, lists and webhooks have if they ask for none.
func DefaultEventTypes() []EventType {
	return []EventType{EventAttestation, EventState, EventPolicy}
}

// ParseEventType parses the name of an event type.
func ParseEventType(name string) (EventType, error) {
	for _, t := range EventTypes() {
		if string(t) == name {
			return t, nil
		}
	}
	return "", fmt.Errorf("%q is not an event type (use %s)", text.Clip(name), EventTypeNames("or"))
}

// EventTypeNames lists the names of all event types, with a word before the last.
func EventTypeNames(word string) string {
	var names []string
	for _, t := range EventTypes() {
		names = append(names, string(t))
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " " + word + " " + names[last]
}

// ParseEventTypes parses a comma-separated list of event types.
func ParseEventTypes(list string) ([]EventType, error) {
	var types []EventType
	for name := range strings.SplitSeq(list, ",") {
		t, err := ParseEventType(strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		types = append(types, t)
	}
	return types, nil
}

// An Event is the body of one event: an AttestationEvent, StateEvent, StandingEvent, PolicyEvent,
// RadarEvent, ViolationEvent, CommitEvent, KeyEvent, IdentityEvent or AuditEvent. Fields are
// written in the order of their declaration; within v1 of the API, fields are added but never removed.
type Event interface {
	EventType() EventType
	// typed returns the event with its Type set.
	typed() Event
}

// An AttestationEvent reports that an attestation was recorded.
type AttestationEvent struct {
	ID            string    `json:"id"`
	Type          EventType `json:"type"` // set by Render
	Org           string    `json:"org"`
	Repo          string    `json:"repo"`
	Commit        string    `json:"commit"`
	Predicate     string    `json:"predicate"`
	Identity      string    `json:"identity"` // the signer's DN
	Result        Result    `json:"result"`
	Timestamp     Time      `json:"timestamp"`
	Attestation   string    `json:"attestation"`
	PayloadDigest string    `json:"payload_digest"`
	// Key is the SHA-256 of the DER SubjectPublicKeyInfo of the signer's key, in hex, and
	// EnvelopeDigest that of the envelope as it was sent. Older events have neither.
	Key            string `json:"key,omitzero"`
	EnvelopeDigest string `json:"envelope_digest,omitzero"`
	// AssertionDigest is "sha256:" and the hex digest of the passkey assertion that has confirmed
	// the statement. It is empty without one.
	AssertionDigest string `json:"assertion_digest,omitzero"`
	// Base is that of the AttestationRecord.
	Base string `json:"base,omitzero"`
}

// A StateEvent reports that a commit moved between two states.
type StateEvent struct {
	ID        string    `json:"id"`
	Type      EventType `json:"type"` // set by Render
	Org       string    `json:"org"`
	Repo      string    `json:"repo"`
	Commit    string    `json:"commit"`
	From      State     `json:"from"`
	To        State     `json:"to"`
	Cause     Cause     `json:"cause"`
	Timestamp Time      `json:"timestamp"`
}

// A StandingEvent reports that the standing of a commit has changed that is DEPLOYED, and stays so, while the ledger
// keeps the standing: as long as the commit runs in an environment, or a claim of a merge names it as the source.
type StandingEvent struct {
	ID        string    `json:"id"`
	Type      EventType `json:"type"` // set by Render
	Org       string    `json:"org"`
	Repo      string    `json:"repo"`
	Commit    string    `json:"commit"`
	From      State     `json:"from"`
	To        State     `json:"to"`
	Cause     Cause     `json:"cause"`
	Timestamp Time      `json:"timestamp"`
}

// A PolicyEvent reports that a repo's contract was updated.
type PolicyEvent struct {
	ID              string    `json:"id"`
	Type            EventType `json:"type"` // set by Render
	Org             string    `json:"org"`
	Repo            string    `json:"repo"`
	Version         int       `json:"version"`
	PreviousVersion int       `json:"previous_version"`
	Digest          string    `json:"digest"`
	// Rules is the version of the contract's rules, 0 in events of contracts without one.
	Rules     int    `json:"rules,omitzero"`
	ChangedBy string `json:"changed_by"`
	Timestamp Time   `json:"timestamp"`
}

// A RadarEvent reports a new overlap of two commits, or an overlap whose level rose. It
// is an event of the commit registered later.
type RadarEvent struct {
	ID     string      `json:"id"`
	Type   EventType   `json:"type"` // set by Render
	Org    string      `json:"org"`
	Repo   string      `json:"repo"`
	Commit string      `json:"commit"`
	Level  radar.Level `json:"level"`
	Other  RadarOther  `json:"other"`
	// Paths holds the strongest paths, strongest first. Render truncates it to limit
	// the size of the body; PathsTotal counts all paths.
	Paths      []RadarEventPath `json:"paths"`
	Timestamp  Time             `json:"timestamp"`
	PathsTotal int              `json:"paths_total"`
}

// A RadarOther is the commit registered earlier.
type RadarOther struct {
	Commit string `json:"commit"`
	Branch string `json:"branch"`
	Author Author `json:"author"`
}

// A RadarEventPath is a radar.Path without its line ranges.
type RadarEventPath struct {
	Path   string       `json:"path"`
	Level  radar.Level  `json:"level"`
	Reason radar.Reason `json:"reason"`
}

// A CommitEvent reports that what is known of a commit, without its evidence, has changed:
// by a registration, by its object, which proves what it is, or by a correction.
type CommitEvent struct {
	ID   string    `json:"id"`
	Type EventType `json:"type"` // set by Render
	Org  string    `json:"org"`
	Repo string    `json:"repo"`
	// Commit is the first of Objects, if there are any.
	Commit string `json:"commit"`
	// Objects are commits that are not registered, and whose objects are known now.
	Objects []string `json:"objects,omitempty"`
	// Tree is the root tree of its object; empty if that is not known.
	Tree string `json:"tree,omitzero"`
	// Facts is the digest of what states are derived from that is known of the commit (see the
	// package facts). Older events have none.
	Facts string `json:"facts,omitzero"`
	// Corrected holds what registrations had claimed otherwise. It is empty, not nil, if nothing was.
	Corrected []CorrectedField `json:"corrected"`
	Timestamp Time             `json:"timestamp"`
}

// A CorrectedField is a field of a Correction, with its values.
type CorrectedField struct {
	Field  string `json:"field"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// A KeyEvent reports that a key with which the server signs for an org is in use, or no
// longer. It is an event of the org, of no repo.
type KeyEvent struct {
	ID     string    `json:"id"`
	Type   EventType `json:"type"` // set by Render
	Org    string    `json:"org"`
	Action KeyAction `json:"action"`
	// Purpose is what the key signs.
	Purpose KeyPurpose `json:"purpose"`
	// Key is the SHA-256 of the DER SubjectPublicKeyInfo, or of the certificate of a CA, in hex.
	Key string `json:"key"`
	// PublicKey is what Key is the digest of. It is written as base64.
	PublicKey []byte `json:"public_key,omitempty"`
	// NotBefore and NotAfter limit when the key signs; zero for no limit.
	NotBefore Time `json:"not_before,omitzero"`
	NotAfter  Time `json:"not_after,omitzero"`
	// Reason is why, in the words of the administrator.
	Reason string `json:"reason,omitzero"`
	// Previous is the log that the first event of a later epoch replaces.
	Previous  *PreviousLog `json:"previous,omitzero"`
	Timestamp Time         `json:"timestamp"`
}

// An IdentityEvent reports that the org trusts a key or a root, trusts it otherwise, or no
// longer. It is an event of the org, of no repo. Its fields have what is in effect after it.
type IdentityEvent struct {
	ID     string         `json:"id"`
	Type   EventType      `json:"type"` // set by Render
	Org    string         `json:"org"`
	Action IdentityAction `json:"action"`
	// IdentityID is the ID of the identity, and Kind its kind: key, root or sigstore. If Kind is
	// KindTrustedRoot, the event is about a version of a trusted root, and IdentityID is its name.
	// If it is KindPasskey, the event is about a passkey of the person with the DN. If it is
	// KindSigner, the event is about the signer with the DN, which is the IdentityID.
	IdentityID string `json:"identity_id"`
	Kind       string `json:"kind"`
	DN         string `json:"dn"`
	Email      string `json:"email,omitzero"`
	// May has the predicates that the identity may attest; nil for every predicate.
	May []string `json:"may,omitzero"`
	// DNPattern is the pattern of the subjects that a root certifies; empty for every subject.
	DNPattern string `json:"dn_pattern,omitzero"`
	// Key is the SHA-256 of the DER SubjectPublicKeyInfo, and Certificate that of the DER certificate,
	// if there is one; both in hex. For a keyless entry, Key is the SHA-256 of Sigstore; for a trusted
	// root, of its document; for a passkey, of its key in the form of COSE; for a signer, of the DN.
	Key         string `json:"key"`
	Certificate string `json:"certificate,omitzero"`
	// NotBefore and NotAfter are the validity of the certificate.
	NotBefore Time `json:"not_before,omitzero"`
	NotAfter  Time `json:"not_after,omitzero"`
	RevokedAt Time `json:"revoked_at,omitzero"`
	// DistrustedSince is the time from which on evidence by the identity does not count; zero if all of it counts.
	DistrustedSince Time `json:"distrusted_since,omitzero"`
	Timestamp       Time `json:"timestamp"`
	// Sigstore says which certificates a keyless entry admits.
	Sigstore *SigstoreEntry `json:"sigstore,omitzero"`
	// Version is that of a trusted root.
	Version int `json:"version,omitzero"`
	// RPID is the domain that a passkey is for.
	RPID string `json:"rp_id,omitzero"`
	// Emails has all e-mail addresses, Email first, if there are several, and Logins the accounts
	// of the signer at forges.
	Emails []string `json:"emails,omitzero"`
	Logins []string `json:"logins,omitzero"`
	// Distinct reports, in an event of a signer, whether the signer is another person than all
	// others with the same names.
	Distinct bool `json:"distinct,omitzero"`
}

// A SigstoreEntry is an entry of an org's allow-list of keyless signers: which certificates of a
// Sigstore instance an identity stands for. Empty fields match every certificate.
type SigstoreEntry struct {
	// TrustedRoot is the name of the org's trusted root that must vouch for the bundle.
	TrustedRoot string `json:"trusted_root"`
	// Issuer is the URL of the OIDC provider that identified the signer.
	Issuer string `json:"issuer"`
	// Subject is the certificate's alternative name: the URL of a workflow, or an e-mail address. A *
	// in it matches any run of characters; only one at the end matches an @.
	Subject string `json:"subject,omitzero"`
	// RepositoryID is the number of the repository at its forge, which no rename changes.
	RepositoryID string `json:"repository_id,omitzero"`
	// Ref is the git ref that was built. A * in it matches any run of characters.
	Ref string `json:"ref,omitzero"`
	// Environment is the deployment environment of the job.
	Environment string `json:"environment,omitzero"`
	// Workflow is the URL of the workflow that started the run; Subject is that of the workflow that
	// signed, which is another one if it is reusable. A * in it matches as in Subject.
	Workflow string `json:"workflow,omitzero"`
	// Commit is CommitAny, or empty: then statements must be about the source commit in the certificate.
	Commit string `json:"commit,omitzero"`
}

// CommitAny is the Commit of a SigstoreEntry that admits statements about any commit.
const CommitAny = "any"

// A SigstoreCertificate is what the certificate of a keyless signature says of its signer.
type SigstoreCertificate struct {
	Subject string `json:"subject"`
	Issuer  string `json:"issuer"`
	// RunURL is the address of the run that signed.
	RunURL string `json:"run_url,omitzero"`
}

// The kinds of an IdentityEvent that is about no identity.
const (
	KindTrustedRoot = "trusted_root" // a trusted root of keyless signatures
	KindPasskey     = "passkey"      // a passkey of a member
	KindSigner      = "signer"       // whether a signer is another person than others with the names
)

// An IdentityAction says what happened to an identity.
type IdentityAction string

// The actions of an IdentityEvent.
const (
	IdentityAdded      IdentityAction = "added"
	IdentityChanged    IdentityAction = "changed"
	IdentityRevoked    IdentityAction = "revoked"
	IdentityDistrusted IdentityAction = "distrusted" // and revoked
	// IdentityKnown is that of an identity which was added, and perhaps changed, before a release that logs identities.
	IdentityKnown IdentityAction = "known"
)

// A KeyAction says what happened to a key.
type KeyAction string

// The actions of a KeyEvent.
const (
	KeyAdded   KeyAction = "added"
	KeyRevoked KeyAction = "revoked"
)

// A KeyPurpose says what a key signs.
type KeyPurpose string

// The purposes of a KeyEvent.
const (
	KeyOfLog      KeyPurpose = "log"     // the checkpoints of the org's log
	KeyOfReceipts KeyPurpose = "receipt" // receipts
	KeyOfCA       KeyPurpose = "ca"      // certificates
)

// A PreviousLog is the log of an earlier epoch, when it was replaced.
type PreviousLog struct {
	Origin string `json:"origin"`
	// Size and Root are those of all its events in the database, signed or not. Root is in
	// base64, as in a checkpoint; empty if leaves were missing.
	Size int64  `json:"size"`
	Root string `json:"root"`
	// Checkpoint is its last known checkpoint as a signed note, which may be of more events, or
	// of others. It is empty if none is known.
	Checkpoint string `json:"checkpoint,omitzero"`
}

// EventType returns EventKey.
func (KeyEvent) EventType() EventType { return EventKey }

// EventType returns EventIdentity.
func (IdentityEvent) EventType() EventType { return EventIdentity }

// EventType returns EventAttestation.
func (AttestationEvent) EventType() EventType { return EventAttestation }

// EventType returns EventState.
func (StateEvent) EventType() EventType { return EventState }

// EventType returns EventStanding.
func (StandingEvent) EventType() EventType { return EventStanding }

// EventType returns EventPolicy.
func (PolicyEvent) EventType() EventType { return EventPolicy }

// EventType returns EventRadar.
func (RadarEvent) EventType() EventType { return EventRadar }

// EventType returns EventCommit.
func (CommitEvent) EventType() EventType { return EventCommit }

func (e IdentityEvent) typed() Event    { e.Type = e.EventType(); return e }
func (e KeyEvent) typed() Event         { e.Type = e.EventType(); return e }
func (e CommitEvent) typed() Event      { e.Type = e.EventType(); return e }
func (e AttestationEvent) typed() Event { e.Type = e.EventType(); return e }
func (e StateEvent) typed() Event       { e.Type = e.EventType(); return e }
func (e StandingEvent) typed() Event    { e.Type = e.EventType(); return e }
func (e PolicyEvent) typed() Event      { e.Type = e.EventType(); return e }

func (e RadarEvent) typed() Event {
	e.Type = e.EventType()
	e.PathsTotal = max(e.PathsTotal, len(e.Paths))
	e.Paths = truncatePaths(e.Paths)
	return e
}

// maxRadarText limits the paths of a radar event, in bytes of JSON. The other fields
// take a few KiB, so the body stays below 256 KiB, the limit of a webhook's body.
const maxRadarText = 192 << 10

// truncatePaths returns the first paths, as many as the body of an event may hold.
func truncatePaths(paths []RadarEventPath) []RadarEventPath {
	paths = paths[:min(len(paths), radar.MaxPaths)]
	size := 0
	for i := range paths {
		if size += len(text.JSON(paths[i])) + 1; size > maxRadarText {
			return paths[:i]
		}
	}
	return paths
}

// Render returns the body of an event as JSON. It is called once for each event: the
// same bytes are stored, listed and delivered to webhooks.
func Render(e Event) []byte { return text.JSON(e.typed()) }

// EventPaths converts paths to the form that a RadarEvent holds.
func EventPaths(paths []radar.Path) []RadarEventPath {
	short := make([]RadarEventPath, len(paths))
	for i, p := range paths {
		short[i] = RadarEventPath{p.Path, p.Level, p.Reason}
	}
	return short
}

// EventPing is the type of a test delivery. It is not an event of the ledger: it is in
// neither the history nor the stream, and webhooks cannot select it.
const EventPing EventType = "ping"

// A PingEvent is the body of a ping.
type PingEvent struct {
	ID        string    `json:"id"`
	Type      EventType `json:"type"` // set by Render
	Org       string    `json:"org"`
	Repo      string    `json:"repo"`
	Webhook   string    `json:"webhook"`
	Timestamp Time      `json:"timestamp"`
}

// EventType returns EventPing.
func (PingEvent) EventType() EventType { return EventPing }

func (e PingEvent) typed() Event { e.Type = e.EventType(); return e }
