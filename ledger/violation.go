package ledger

import "fmt"

// A Violation is a deployment that did not count when it was recorded: a pass for a
// predicate that a DEPLOYED requirement names, of a commit that was not PROMOTABLE, or by
// a signer who is not accepted. No later policy makes or unmakes one.
type Violation struct {
	Org       string `json:"org"`
	Repo      string `json:"repo"`
	Commit    string `json:"commit"`
	Predicate string `json:"predicate"`
	Identity  string `json:"identity"` // the signer's DN
	// Attestation is the id of the deployment's attestation.
	Attestation string `json:"attestation"`
	// State is the state of the commit before the deployment was recorded.
	State State `json:"state"`
	// Missing holds the reasons why it did not count.
	Missing  []string        `json:"missing"`
	Status   ViolationStatus `json:"status"`
	OpenedAt Time            `json:"opened_at"`
	ClosedAt Time            `json:"closed_at,omitzero"`
	// ClosedBy is what closed it; nil if it is open.
	ClosedBy *Closing `json:"closed_by,omitzero"`
}

// A ViolationStatus is the status of a violation, or in an event what has happened to it.
type ViolationStatus string

// The statuses of violations.
const (
	ViolationOpen   ViolationStatus = "open"
	ViolationClosed ViolationStatus = "closed"
	ViolationOpened ViolationStatus = "opened" // only in events
)

// ParseViolationStatus parses the status of a violation.
func ParseViolationStatus(name string) (ViolationStatus, error) {
	switch s := ViolationStatus(name); s {
	case ViolationOpen, ViolationClosed:
		return s, nil
	}
	return "", fmt.Errorf("%q is not a status (use open or closed)", name)
}

// A Closing is the attestation that closed a violation.
type Closing struct {
	Type ClosingType `json:"type"`
	ID   string      `json:"id"` // of the attestation
}

// A ClosingType says how an attestation closes a violation.
type ClosingType string

// The ways in which a violation is closed.
const (
	ClosedByDeployment ClosingType = "deployment" // a later one of the predicate that counts
	ClosedByRollback   ClosingType = "rollback"
	ClosedByException  ClosingType = "exception"
)

// A ViolationNote is the part of the record of an attestation that says it is a violation.
type ViolationNote struct {
	// Missing holds the reasons why the deployment does not count.
	Missing []string `json:"missing"`
}

// A ViolationEvent reports that a violation was opened or closed.
type ViolationEvent struct {
	ID          string    `json:"id"`
	Type        EventType `json:"type"` // set by Render
	Org         string    `json:"org"`
	Repo        string    `json:"repo"`
	Commit      string    `json:"commit"`
	Predicate   string    `json:"predicate"`
	Identity    string    `json:"identity"` // the DN of the deployment's signer
	Attestation string    `json:"attestation"`
	State       State     `json:"state"`
	Missing     []string  `json:"missing"`
	// Status is ViolationOpened or ViolationClosed.
	Status ViolationStatus `json:"status"`
	// ClosedBy is what closed the violation; nil if it was opened.
	ClosedBy  *Closing `json:"closed_by,omitzero"`
	Timestamp Time     `json:"timestamp"`
}

// EventType returns EventViolation.
func (ViolationEvent) EventType() EventType { return EventViolation }

func (e ViolationEvent) typed() Event { e.Type = e.EventType(); return e }
