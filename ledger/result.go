package ledger

// A Result is the outcome that a statement reports: a status and a duration.
type Result struct {
	Status     Status `json:"status"`
	DurationMS int64  `json:"duration_ms"`
}

// A Status says whether a check passed.
type Status string

// The statuses.
const (
	Pass    Status = "pass"
	Warn    Status = "warn"
	Fail    Status = "fail"
	Errored Status = "error"
	Skip    Status = "skip"
	// Recorded is the status of statements whose predicate type states no outcome, such
	// as an SBOM.
	Recorded Status = "recorded"
)

// IsFailure reports whether a check failed or ended with an error.
func (s Status) IsFailure() bool { return s == Fail || s == Errored }

// Statuses returns all statuses.
func Statuses() []Status { return []Status{Pass, Warn, Fail, Errored, Skip, Recorded} }
