// Package report gathers what a check of a database has found.
package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// A Problem is something in the database that contradicts the rest of it, or what is known
// about it from elsewhere.
type Problem struct {
	// Check names what was checked, such as leaf or counter.
	Check   string `json:"check"`
	Org     string `json:"org,omitzero"`
	Row     string `json:"row,omitzero"` // which row is wrong, such as event 17 (evt_…)
	Problem string `json:"problem"`
}

// String returns the problem as a line of text.
func (p Problem) String() string {
	line := p.Check
	if p.Org != "" {
		line += " " + p.Org
	}
	if p.Row != "" {
		line += " " + p.Row
	}
	return line + ": " + p.Problem
}

// rank is 1 for problems of the file, which come first, and 0 for others.
func (p Problem) rank() int {
	if p.Check == "file" {
		return 1
	}
	return 0
}

// A Report is what a check has found.
type Report struct {
	// Found is the number of problems. Problems lists the first of each check.
	Found    int64     `json:"found"`
	Problems []Problem `json:"problems"`
	// More has, by check, how many problems are not listed.
	More map[string]int64 `json:"more,omitzero"`
	// Unchecked says what could not be checked, and why.
	Unchecked []string `json:"unchecked"`
	// Complete is false if something was not checked that should be, such as what is in no event yet.
	Complete bool `json:"complete"`
	// What was read.
	Orgs   int64 `json:"orgs"`
	Events int64 `json:"events"`
	Pruned int64 `json:"pruned"` // events whose body was pruned
	// PrunedEnvelopes is the number of attestations whose envelope was pruned.
	PrunedEnvelopes int64 `json:"pruned_envelopes"`
	// Attestations is the number of attestations with an event.
	Attestations int64 `json:"attestations"`
	Tiles        int64 `json:"tiles"`
	// Commits is the number of commits, and Pending how many of them are to be derived again, so
	// that their state was not checked.
	Commits int64 `json:"commits"`
	Pending int64 `json:"pending"`
}

// maxListed is how many problems of each check a report lists.
const maxListed = 20

// A Reporter gathers the problems. Its methods are safe for concurrent use.
type Reporter struct {
	mu     sync.Mutex
	report Report
	counts map[string]int64 // problems by check
}

// New returns a reporter that has found nothing.
func New() *Reporter {
	report := Report{Problems: []Problem{}, Unchecked: []string{}, Complete: true}
	return &Reporter{report: report, counts: make(map[string]int64)}
}

// Problemf adds a problem.
func (r *Reporter) Problemf(check, org, row, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(Problem{Check: check, Org: org, Row: row, Problem: fmt.Sprintf(format, args...)})
}

// problemOnce adds a problem that is not listed yet.
func (r *Reporter) problemOnce(p Problem) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.report.Problems, p) {
		r.add(p)
	}
}

func (r *Reporter) add(p Problem) {
	if r.counts[p.Check]++; r.counts[p.Check] <= maxListed {
		r.report.Problems = append(r.report.Problems, p)
	}
}

// Failed adds the checks of a row that have failed.
func (r *Reporter) Failed(org, row string, checks ...verify.Check) {
	for _, c := range checks {
		if c.Status == verify.Failed {
			r.Problemf(c.Name, org, row, "%s", c.Detail)
		}
	}
}

// Uncheckedf notes what could not be checked.
func (r *Reporter) Uncheckedf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	if len(r.report.Unchecked) < maxListed && !slices.Contains(r.report.Unchecked, text) {
		r.report.Unchecked = append(r.report.Unchecked, text)
	}
}

// Incompletef notes what could not be checked and should be, such as what is in no event yet.
func (r *Reporter) Incompletef(format string, args ...any) {
	r.Uncheckedf(format, args...)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Complete = false
}

// Count adds to a number of the report.
func (r *Reporter) Count(number func(*Report) *int64, by int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*number(&r.report) += by
}

// Result returns the report.
func (r *Reporter) Result() Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	report := r.report
	slices.SortStableFunc(report.Problems, func(a, b Problem) int { // the file is checked at the same time
		return cmp.Compare(b.rank(), a.rank())
	})
	if report.Pruned+report.PrunedEnvelopes > 0 {
		report.Unchecked = append(slices.Clone(report.Unchecked), fmt.Sprintf("what was pruned: events %d, envelopes %d",
			report.Pruned, report.PrunedEnvelopes))
	}

	for _, check := range slices.Sorted(maps.Keys(r.counts)) {
		n := r.counts[check]
		if report.Found += n; n <= maxListed {
			continue
		}
		if report.More == nil {
			report.More = make(map[string]int64)
		}
		report.More[check] = n - maxListed
	}
	return report
}
