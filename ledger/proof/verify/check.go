// Package verify decides whether what a ledger says agrees with its transparency log: the
// bodies of events, the signatures of attestations, and the checkpoints over time. It trusts
// the ledger in nothing.
package verify

import "fmt"

// A Status is the result of a check.
type Status string

// The results of a check.
const (
	OK         Status = "ok"
	Failed     Status = "failed"
	NotChecked Status = "not_checked"
)

// The names of the checks of a log.
const (
	CheckConsistency = "consistency"
	CheckWitnesses   = "witnesses"
	CheckAge         = "age"
	CheckCompare     = "compare"
)

// The names of the checks of commits and repos.
const (
	CheckEvents       = "events"
	CheckAttestations = "attestations"
	CheckStates       = "states"
	CheckPolicy       = "policy"
	CheckFacts        = "facts"
	CheckDerivation   = "derivation"
	CheckComplete     = "complete"
)

// A Check is one thing that was checked, or not.
type Check struct {
	Name   string `json:"check"`
	Status Status `json:"status"`
	// Detail says what was found or, if it was not checked, why.
	Detail string `json:"detail"`
	// Unasked reports that the check was not made because nobody asked for it. Any other check that was
	// not made leaves the report incomplete.
	Unasked bool `json:"unasked,omitempty"`
	// Evidence names the files with what contradicts each other.
	Evidence []string `json:"evidence,omitempty"`
}

// Passed returns a check that has passed.
func Passed(name, format string, args ...any) Check {
	return Check{Name: name, Status: OK, Detail: fmt.Sprintf(format, args...)}
}

// Failure returns a check that has failed.
func Failure(name, format string, args ...any) Check {
	return Check{Name: name, Status: Failed, Detail: fmt.Sprintf(format, args...)}
}

// Skipped returns a check that was asked for and could not be made.
func Skipped(name, format string, args ...any) Check {
	return Check{Name: name, Status: NotChecked, Detail: fmt.Sprintf(format, args...)}
}

// Unasked returns a check that was not made because nobody asked for it.
func Unasked(name, format string, args ...any) Check {
	return Check{Name: name, Status: NotChecked, Detail: fmt.Sprintf(format, args...), Unasked: true}
}

// Result returns a check that has failed if err is not nil, and passed otherwise.
func Result(name string, err error, format string, args ...any) Check {
	if err != nil {
		return Failure(name, "%v", err)
	}
	return Passed(name, format, args...)
}

// A Report is the result of all checks of a subject.
type Report struct {
	// Kind is what was verified, such as attestation.
	Kind string `json:"kind"`
	ID   string `json:"id"`
	// Verified reports that no check has failed.
	Verified bool `json:"verified"`
	// Complete reports that every check that was asked for was made.
	Complete bool    `json:"complete"`
	Checks   []Check `json:"checks"`
}

// NewReport returns the report of checks.
func NewReport(kind, id string, checks []Check) Report {
	r := Report{Kind: kind, ID: id, Verified: true, Complete: true, Checks: checks}
	for _, c := range checks {
		r.Verified = r.Verified && c.Status != Failed
		r.Complete = r.Complete && (c.Status != NotChecked || c.Unasked)
	}
	return r
}
