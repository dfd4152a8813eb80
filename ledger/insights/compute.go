package insights

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// A Commit is what a report needs of a commit.
type Commit struct {
	Registered ledger.Time
	// Committed is the time in the commit, or 0.
	Committed ledger.Time
	// Steps are its transitions, oldest first.
	Steps []Step
}

// A Step is a transition of a commit.
type Step struct {
	From, To ledger.State
	At       ledger.Time
}

// An Outcome is an attestation for a predicate deploy:NAME or rollback:NAME. With the status
// ledger.Recorded, one for deploy:NAME is an attempt that failed.
type Outcome struct {
	// Place identifies the environment of a repo, and Commit the commit.
	Place, Commit int64
	At            ledger.Time
	Status        ledger.Status
	// Violation reports whether it is a deployment that did not count.
	Violation bool
	// IsRollback reports whether it is for the predicate rollback:NAME.
	IsRollback bool
}

// A Result is the outcome of any attestation.
type Result struct {
	Predicate  string
	Status     ledger.Status
	DurationMS int64
}

// Add computes the figures of a report with the fields From and To. The order of the
// arguments does not matter, except that outcomes at the same time are in their order.
func (r *Report) Add(commits []Commit, outcomes []Outcome, results []Result) {
	r.Weeks = weeks(r.From, r.To)
	r.addDeployments(outcomes)
	r.addLeadTimes(commits)
	r.addStates(commits)
	r.Predicates = predicates(results)
}

const week = 7 * 24 * time.Hour

// weeks returns the weeks from a Monday to a time.
func weeks(from, to ledger.Time) (list []Week) {
	for start := from; start <= to; start = start.Add(week) {
		list = append(list, Week{Start: start})
	}
	return list
}

// week returns the week of a time, or nil if it is not in the report.
func (r *Report) week(at ledger.Time) *Week {
	if at < r.From || at > r.To {
		return nil
	}
	return &r.Weeks[at.Sub(r.From)/week]
}

// addDeployments counts the deployments in outcomes.
func (r *Report) addDeployments(outcomes []Outcome) {
	outcomes = slices.Clone(outcomes)
	slices.SortStableFunc(outcomes, func(a, b Outcome) int {
		return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.At, b.At))
	})

	for len(outcomes) > 0 {
		n := 1
		for n < len(outcomes) && outcomes[n].Place == outcomes[0].Place {
			n++
		}
		for _, d := range r.deployments(outcomes[:n]) {
			r.addDeployment(d)
		}
		outcomes = outcomes[n:]
	}
	r.Deployments.FailRate = share(r.Deployments.Failed, r.Deployments.Count)
}

func (r *Report) addDeployment(d deployment) {
	w := r.week(d.at)
	switch {
	case w == nil:
	case d.violation:
		w.Violations++
		r.Deployments.Violations++
	default:
		w.Count++
		r.Deployments.Count++
		if d.failed {
			w.Failed++
			r.Deployments.Failed++
		}
	}
}

// count counts what has happened at a time, if it is in the time of the report.
func (r *Report) count(at ledger.Time, total *int, of func(*Week) *int) {
	if w := r.week(at); w != nil {
		*total++
		*of(w)++
	}
}

// A deployment is one of an environment.
type deployment struct {
	commit            int64
	at                ledger.Time
	violation, failed bool
}

// deployments returns the deployments among the outcomes of one environment, which are in
// their order, and counts attempts and rollbacks. A pass of the commit that runs already is no
// other deployment.
func (r *Report) deployments(outcomes []Outcome) (list []deployment) {
	running := -1                 // index of the latest that counts, unless it was rolled back
	latest := make(map[int64]int) // index by commit

	for _, o := range outcomes {
		switch {
		case o.Status == ledger.Recorded && !o.IsRollback:
			r.count(o.At, &r.Deployments.Attempts, func(w *Week) *int { return &w.Attempts })
		case o.Status != ledger.Pass: // a rollback, if the commit was deployed
			if i, ok := latest[o.Commit]; ok {
				r.count(o.At, &r.Deployments.Rollbacks, func(w *Week) *int { return &w.Rollbacks })
				list[i].fail(o.At)
				delete(latest, o.Commit)
				if running == i {
					running = -1
				}
			}
		case o.Violation:
			if running >= 0 {
				list[running].fail(o.At)
			}
			running = -1
			list = append(list, deployment{commit: o.Commit, at: o.At, violation: true})
		case running >= 0 && list[running].commit == o.Commit:
		default:
			running = len(list)
			latest[o.Commit] = running
			list = append(list, deployment{commit: o.Commit, at: o.At})
		}
	}
	return list
}

// fail notes what makes the deployment a failed one, unless that came too late.
func (d *deployment) fail(at ledger.Time) {
	if at.Sub(d.at) <= FailureWindow {
		d.failed = true
	}
}

// addLeadTimes adds the time to DEPLOYED of the commits that reached it first in the time of
// the report.
func (r *Report) addLeadTimes(commits []Commit) {
	var all []int64
	byWeek := make([][]int64, len(r.Weeks))
	for _, c := range commits {
		i := slices.IndexFunc(c.Steps, func(s Step) bool { return s.To == ledger.Deployed })
		if i < 0 {
			continue
		}
		at := c.Steps[i].At
		if w := r.week(at); w != nil {
			took := max(0, int64(at-c.begin()))
			all = append(all, took)
			n := at.Sub(r.From) / week
			byWeek[n] = append(byWeek[n], took)
		}
	}
	r.LeadTime = spread(all)
	for i := range r.Weeks {
		r.Weeks[i].LeadTime = spread(byWeek[i])
	}
}

// begin returns the time at which the lead time of a commit begins. A time in the commit that
// is later than its registration is wrong.
func (c *Commit) begin() ledger.Time {
	if c.Committed > 0 && c.Committed <= c.Registered {
		return c.Committed
	}
	return c.Registered
}

// addStates adds how long commits stayed in each state below DEPLOYED. A state that a commit
// only passes through does not count.
func (r *Report) addStates(commits []Commit) {
	stays := make(map[ledger.State][]int64)
	for _, c := range commits {
		since := c.Registered
		for _, s := range c.Steps {
			if s.At >= r.From && s.At <= r.To && s.At > since {
				stays[s.From] = append(stays[s.From], int64(s.At-since))
			}
			since = s.At
		}
	}

	r.States = []StateTime{}
	for _, s := range ledger.States() {
		if s != ledger.Deployed {
			r.States = append(r.States, StateTime{s, spread(stays[s])})
		}
	}
}

// predicates returns the figures of the predicates that results are for.
func predicates(results []Result) []Predicate {
	byName := make(map[string]*Predicate)
	durations := make(map[string][]int64)
	for _, res := range results {
		p := byName[res.Predicate]
		if p == nil {
			p = &Predicate{Predicate: res.Predicate}
			byName[res.Predicate] = p
		}
		p.Results++
		switch res.Status {
		case ledger.Pass:
			p.Passed++
		case ledger.Fail, ledger.Errored:
			p.Failed++
		}
		if res.DurationMS > 0 {
			durations[res.Predicate] = append(durations[res.Predicate], res.DurationMS)
		}
	}

	list := make([]Predicate, 0, len(byName))
	for name, p := range byName {
		p.PassRate, p.Duration = share(p.Passed, p.Passed+p.Failed), spread(durations[name])
		list = append(list, *p)
	}
	slices.SortFunc(list, func(a, b Predicate) int {
		return cmp.Or(cmp.Compare(b.Results, a.Results), cmp.Compare(a.Predicate, b.Predicate))
	})
	return list[:min(len(list), MaxPredicates)]
}

// share returns part/of with four decimals, or nil if of is 0.
func share(part, of int) *float64 {
	if of == 0 {
		return nil
	}
	return new(math.Round(10_000*float64(part)/float64(of)) / 10_000)
}

// spread summarizes durations in milliseconds, and sorts them.
func spread(list []int64) Spread {
	slices.Sort(list)
	return Spread{Count: len(list), MedianMS: quantile(list, 50), P90MS: quantile(list, 90), P95MS: quantile(list, 95)}
}

// quantile returns the smallest value that is not exceeded by the given percentage of a
// sorted list (nearest rank), or 0 if the list is empty.
func quantile(sorted []int64, percent int) int64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*percent+99)/100-1]
}
