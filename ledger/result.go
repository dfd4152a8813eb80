package ledger

// A Result is what an attestation found.
type Result struct {
	Status     Status `json:"status"`
	DurationMS int64  `json:"duration_ms"`
}

// A Status is the outcome that an attestation reports.
type Status string

// The five statuses.
const (
	Pass    Status = "pass"
	Warn    Status = "warn"
	Fail    Status = "fail"
	Errored Status = "error"
	Skip    Status = "skip"
)
