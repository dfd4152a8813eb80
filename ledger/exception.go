package ledger

// An ExceptionRecord is a recorded exception, as lists have it: somebody vouches for a
// commit in place of one requirement, until an end.
type ExceptionRecord struct {
	Attestation string `json:"attestation"`
	Org         string `json:"org"`
	Repo        string `json:"repo"`
	Commit      string `json:"commit"`
	// Requirement is the name of the requirement.
	Requirement string `json:"requirement"`
	// Identity is the DN of the signer.
	Identity   string `json:"identity"`
	Reason     string `json:"reason"`
	RecordedAt Time   `json:"recorded_at"`
	Until      Time   `json:"until"`
	// Active reports whether the exception counts now, under the policy in effect.
	Active bool `json:"active"`
	// Inactive is why it does not count. It is empty if it does.
	Inactive string `json:"inactive,omitzero"`
}

// Ends reports whether the record ends earlier exceptions for its requirement.
func (r *ExceptionRecord) Ends() bool { return r.Until <= r.RecordedAt }
