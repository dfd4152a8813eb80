package ledger

// A Result is the outcome that a statement reports: a status and a duration.
type Result struct {
	Status     Status `json:"status"`
	DurationMS int64  `json:"duration_ms"`
}

// A Status says whether a check passed.
type Status string

// The five statuses.
const (
	Pass    Status = "pass"
	Warn    Status = "warn"
	Fail    Status = "fail"
	Errored Status = "error"
	Skip    Status = "skip"
)
