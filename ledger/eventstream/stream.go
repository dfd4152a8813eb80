// Package eventstream defines the data that the live stream sends for each type of
// event. It has fewer fields than the event's body, and the signer's plain name.
package eventstream

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// An Attestation is the data of an attestation event on the stream.
type Attestation struct {
	Commit    string        `json:"commit"`
	Predicate string        `json:"predicate"`
	Identity  string        `json:"identity"` // the signer's plain name (CN)
	Repo      string        `json:"repo"`
	Timestamp ledger.Time   `json:"timestamp"`
	Result    ledger.Result `json:"result"`
}

// A State is the data of a state event on the stream.
type State struct {
	Commit    string       `json:"commit"`
	From      ledger.State `json:"from"`
	To        ledger.State `json:"to"`
	Repo      string       `json:"repo"`
	Timestamp ledger.Time  `json:"timestamp"`
}

// A Policy is the data of a policy event on the stream.
type Policy struct {
	Repo            string      `json:"repo"`
	Version         int         `json:"version"`
	PreviousVersion int         `json:"previous_version"`
	Digest          string      `json:"digest"`
	Timestamp       ledger.Time `json:"timestamp"`
}

// A Radar is the data of a radar event on the stream.
type Radar struct {
	Commit     string                  `json:"commit"`
	Level      radar.Level             `json:"level"`
	Other      ledger.RadarOther       `json:"other"`
	Paths      []ledger.RadarEventPath `json:"paths"`
	Repo       string                  `json:"repo"`
	Timestamp  ledger.Time             `json:"timestamp"`
	PathsTotal int                     `json:"paths_total"`
}

// A Commit is the data of a commit event on the stream.
type Commit struct {
	Commit    string                  `json:"commit"`
	Facts     string                  `json:"facts,omitzero"`
	Tree      string                  `json:"tree,omitzero"`
	Corrected []ledger.CorrectedField `json:"corrected"`
	Repo      string                  `json:"repo"`
	Timestamp ledger.Time             `json:"timestamp"`
}

// A Key is the data of a key event on the stream.
type Key struct {
	Action    ledger.KeyAction    `json:"action"`
	Purpose   ledger.KeyPurpose   `json:"purpose"`
	Key       string              `json:"key"`
	NotBefore ledger.Time         `json:"not_before,omitzero"`
	NotAfter  ledger.Time         `json:"not_after,omitzero"`
	Reason    string              `json:"reason,omitzero"`
	Previous  *ledger.PreviousLog `json:"previous,omitzero"`
	Timestamp ledger.Time         `json:"timestamp"`
}

// An Identity is the data of an identity event on the stream.
type Identity struct {
	Action          ledger.IdentityAction `json:"action"`
	IdentityID      string                `json:"identity_id"`
	Kind            string                `json:"kind"`
	DN              string                `json:"dn"`
	May             []string              `json:"may,omitzero"`
	DNPattern       string                `json:"dn_pattern,omitzero"`
	Key             string                `json:"key"`
	Certificate     string                `json:"certificate,omitzero"`
	NotBefore       ledger.Time           `json:"not_before,omitzero"`
	NotAfter        ledger.Time           `json:"not_after,omitzero"`
	RevokedAt       ledger.Time           `json:"revoked_at,omitzero"`
	DistrustedSince ledger.Time           `json:"distrusted_since,omitzero"`
	Timestamp       ledger.Time           `json:"timestamp"`

	Sigstore *ledger.SigstoreEntry `json:"sigstore,omitzero"`
	Version  int                   `json:"version,omitzero"`
}

// A Standing is the data of a standing event on the stream.
type Standing struct {
	Commit    string       `json:"commit"`
	From      ledger.State `json:"from"`
	To        ledger.State `json:"to"`
	Cause     ledger.Cause `json:"cause"`
	Repo      string       `json:"repo"`
	Timestamp ledger.Time  `json:"timestamp"`
}

// A Violation is the data of a violation event on the stream.
type Violation struct {
	Commit      string                 `json:"commit"`
	Predicate   string                 `json:"predicate"`
	Identity    string                 `json:"identity"` // the plain name (CN) of the deployment's signer
	Status      ledger.ViolationStatus `json:"status"`
	State       ledger.State           `json:"state"`
	Missing     []string               `json:"missing"`
	Attestation string                 `json:"attestation"`
	ClosedBy    *ledger.Closing        `json:"closed_by,omitzero"`
	Repo        string                 `json:"repo"`
	Timestamp   ledger.Time            `json:"timestamp"`
}

// An Audit is the data of an audit event.
type Audit struct {
	Action    ledger.AuditAction   `json:"action"`
	Repo      string               `json:"repo,omitzero"`
	Target    string               `json:"target"`
	By        ledger.Actor         `json:"by"`
	Changes   []ledger.AuditChange `json:"changes"`
	Timestamp ledger.Time          `json:"timestamp"`
}

// LedgerRestored is the type of a message that is no event of the ledger: a server sends it to a
// client that resumes after an event which a restore of the database from a backup has removed.
const LedgerRestored ledger.EventType = "ledger_restored"

// A Restored is the data of a message of the type LedgerRestored. The stream goes on with the
// event after LastEvent.
type Restored struct {
	// LastEvent is the ID of the last event of the org in the backup, or earliest if it had none.
	LastEvent  string      `json:"last_event"`
	RestoredAt ledger.Time `json:"restored_at"`
}

// Data converts the body of an event of type t to its data on the stream: one JSON
// object on one line.
func Data(t ledger.EventType, body []byte) ([]byte, error) {
	switch t {
	case ledger.EventAttestation:
		return convert(body, func(e ledger.AttestationEvent) (any, error) {
			signer, err := signerOf(e.ID, e.Identity)
			return Attestation{e.Commit, e.Predicate, signer, e.Repo, e.Timestamp, e.Result}, err
		})
	case ledger.EventViolation:
		return convert(body, func(e ledger.ViolationEvent) (any, error) {
			signer, err := signerOf(e.ID, e.Identity)
			return Violation{e.Commit, e.Predicate, signer, e.Status, e.State, e.Missing, e.Attestation,
				e.ClosedBy, e.Repo, e.Timestamp}, err
		})
	case ledger.EventStanding:
		return convert(body, func(e ledger.StandingEvent) (any, error) {
			return Standing{e.Commit, e.From, e.To, e.Cause, e.Repo, e.Timestamp}, nil
		})

	case ledger.EventState:
		return convert(body, func(e ledger.StateEvent) (any, error) {
			return State{e.Commit, e.From, e.To, e.Repo, e.Timestamp}, nil
		})
	case ledger.EventPolicy:
		return convert(body, func(e ledger.PolicyEvent) (any, error) {
			return Policy{e.Repo, e.Version, e.PreviousVersion, e.Digest, e.Timestamp}, nil
		})

	case ledger.EventRadar:
		return convert(body, func(e ledger.RadarEvent) (any, error) {
			return Radar{e.Commit, e.Level, e.Other, e.Paths, e.Repo, e.Timestamp, e.PathsTotal}, nil
		})
	case ledger.EventCommit:
		return convert(body, func(e ledger.CommitEvent) (any, error) {
			return Commit{e.Commit, e.Facts, e.Tree, e.Corrected, e.Repo, e.Timestamp}, nil
		})
	case ledger.EventKey:
		return convert(body, func(e ledger.KeyEvent) (any, error) {
			return Key{e.Action, e.Purpose, e.Key, e.NotBefore, e.NotAfter, e.Reason, e.Previous, e.Timestamp}, nil
		})

	case ledger.EventIdentity:
		return convert(body, func(e ledger.IdentityEvent) (any, error) {
			return Identity{e.Action, e.IdentityID, e.Kind, e.DN, e.May, e.DNPattern, e.Key, e.Certificate,
				e.NotBefore, e.NotAfter, e.RevokedAt, e.DistrustedSince, e.Timestamp, e.Sigstore, e.Version}, nil
		})
	case ledger.EventAudit:
		return convert(body, func(e ledger.AuditEvent) (any, error) {
			return Audit{e.Action, e.Repo, e.Target, e.By, e.Changes, e.Timestamp}, nil
		})
	}
	return nil, fmt.Errorf("events of type %.100q are not streamed", string(t))
}

// convert converts a body with an event E.
func convert[E any](body []byte, data func(E) (any, error)) ([]byte, error) {
	var e E
	if err := json.Unmarshal(body, &e); err != nil {
		return nil, fmt.Errorf("decode event body: %w", err)
	}
	v, err := data(e)
	if err != nil {
		return nil, err
	}
	return text.JSON(v), nil
}

// signerOf returns the plain name of the signer of an event.
func signerOf(event, dn string) (string, error) {
	signer, err := identity.ParseDN(dn)
	if err != nil {
		return "", fmt.Errorf("parse identity of event %s: %w", event, err)
	}
	return signer.CN, nil
}
