// Package insights computes how commits come to be deployed, how often deployments fail, and
// how checks fare, from samples of what the ledger has recorded. docs/insights.md defines the
// figures.
package insights

import (
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// Limits of a report.
const (
	// DefaultDays and MaxDays are the days that a report is about.
	DefaultDays = 90
	MaxDays     = 365
	// FailureWindow is the time after a deployment in which a rollback, or a deployment that
	// does not count, makes it a failed one.
	FailureWindow = 7 * 24 * time.Hour
	// MaxPredicates is the maximum number of predicates in a report.
	MaxPredicates = 50
)

// A Report has the figures of an org or a repo.
type Report struct {
	Org  string `json:"org"`
	Repo string `json:"repo,omitzero"`
	Days int    `json:"days"`
	// From is the beginning of the first week, a Monday in UTC. To is the time of the report.
	From ledger.Time `json:"from"`
	To   ledger.Time `json:"to"`

	Deployments Deployments `json:"deployments"`
	// LeadTime is the time from a commit to its first state DEPLOYED.
	LeadTime Spread `json:"lead_time"`
	// Weeks has all weeks, oldest first. The last one is not over.
	Weeks []Week `json:"weeks"`
	// States has the time that commits stayed in the states below DEPLOYED.
	States []StateTime `json:"states"`
	// Predicates has the predicates with the most results first, at most MaxPredicates.
	Predicates []Predicate `json:"predicates"`
	// Samples say what the figures were computed from.
	Samples Samples `json:"samples"`
}

// Deployments counts deployments.
type Deployments struct {
	Count int `json:"count"`
	// Failed counts those that failed; FailRate is its share. It is nil if there are no
	// deployments.
	Failed   int      `json:"failed"`
	FailRate *float64 `json:"fail_rate,omitzero"`
	// Violations counts the deployments that did not count. They are not in Count.
	Violations int `json:"violations"`
	// Attempts counts the attempts to deploy that failed, and Rollbacks what ended deployments. They
	// are not in Count.
	Attempts  int `json:"attempts"`
	Rollbacks int `json:"rollbacks"`
}

// A Spread summarizes durations. The quantiles are 0 if Count is.
type Spread struct {
	Count    int   `json:"count"`
	MedianMS int64 `json:"median_ms"`
	P90MS    int64 `json:"p90_ms"`
	P95MS    int64 `json:"p95_ms"`
}

// A Week has the figures of one week.
type Week struct {
	Start      ledger.Time `json:"start"`
	Count      int         `json:"deployments"`
	Failed     int         `json:"failed"`
	Violations int         `json:"violations"`
	Attempts   int         `json:"attempts"`
	Rollbacks  int         `json:"rollbacks"`
	LeadTime   Spread      `json:"lead_time"`
}

// A StateTime is the time that commits stayed in a state before they left it.
type StateTime struct {
	State ledger.State `json:"state"`
	Time  Spread       `json:"time"`
}

// A Predicate has the figures of the results for a predicate.
type Predicate struct {
	Predicate string `json:"predicate"`
	Results   int    `json:"results"`
	// Passed counts the status pass, Failed counts fail and error. PassRate is the share of
	// Passed among both; nil if both are 0.
	Passed   int      `json:"passed"`
	Failed   int      `json:"failed"`
	PassRate *float64 `json:"pass_rate,omitzero"`
	// Duration is that of the results which state one.
	Duration Spread `json:"duration"`
}

// Samples say how much was read for a report.
type Samples struct {
	Commits     Sample `json:"commits"`
	Deployments Sample `json:"deployments"`
	Results     Sample `json:"results"`
}

// A Sample is the newest rows of their kind.
type Sample struct {
	Examined int `json:"examined"`
	// Since is set if there are more rows: older than this, some or all are missing.
	Since ledger.Time `json:"since,omitzero"`
	// Reason says why some are missing.
	Reason string `json:"reason,omitzero"`
}

// Window returns the time that a report of some days covers: From is the Monday on or before
// the first day.
func Window(days int, now ledger.Time) (from ledger.Time) {
	first := now.Std().AddDate(0, 0, 1-days)
	sinceMonday := (int(first.Weekday()) + 6) % 7
	year, month, day := first.AddDate(0, 0, -sinceMonday).Date()
	return ledger.TimeOf(time.Date(year, month, day, 0, 0, 0, 0, time.UTC))
}
