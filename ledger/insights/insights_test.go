package insights_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/insights"
)

// monday is Monday, 5 January 2026.
var monday = ledger.TimeOf(time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC))

const (
	hour = time.Hour
	day  = 24 * hour
)

func report(days int, to ledger.Time) *insights.Report {
	return &insights.Report{Days: days, From: insights.Window(days, to), To: to}
}

func TestWindow(t *testing.T) {
	for _, test := range []struct {
		days  int
		now   ledger.Time
		from  ledger.Time
		weeks int
	}{
		{7, monday, monday.Add(-7 * day), 2},
		{7, monday.Add(6*day + hour), monday, 1},
		{7, monday.Add(7 * day), monday, 2},
		{1, monday, monday, 1},
		{90, monday.Add(3 * day), monday.Add(-13*7*day + 0), 14},
	} {
		r := report(test.days, test.now)
		r.Add(nil, nil, nil)
		if r.From != test.from || len(r.Weeks) != test.weeks {
			t.Errorf("%d days until %s: from %s, %d weeks, want %s, %d", test.days, test.now, r.From, len(r.Weeks),
				test.from, test.weeks)
		}
	}
}

func TestEmpty(t *testing.T) {
	r := report(7, monday.Add(6*day))
	r.Add(nil, nil, nil)
	if r.Deployments.FailRate != nil || len(r.States) != 4 || r.Predicates == nil || len(r.Weeks) != 1 ||
		r.LeadTime != (insights.Spread{}) {
		t.Errorf("%+v", r)
	}
}

func TestDeployments(t *testing.T) {
	at := func(place, commit int64, after time.Duration, status ledger.Status) insights.Outcome {
		return insights.Outcome{Place: place, Commit: commit, At: monday.Add(after), Status: status}
	}
	violation := func(place, commit int64, after time.Duration) insights.Outcome {
		o := at(place, commit, after, ledger.Pass)
		o.Violation = true
		return o
	}
	for _, test := range []struct {
		name                      string
		outcomes                  []insights.Outcome
		count, failed, violations int
	}{
		{"one", []insights.Outcome{at(1, 1, hour, ledger.Pass)}, 1, 0, 0},
		{"at the beginning of the window", []insights.Outcome{at(1, 1, 0, ledger.Pass)}, 1, 0, 0},
		{"before the window", []insights.Outcome{at(1, 1, -hour, ledger.Pass)}, 0, 0, 0},
		{"a second signer", []insights.Outcome{at(1, 1, hour, ledger.Pass), at(1, 1, 2*hour, ledger.Pass)}, 1, 0, 0},
		{"two environments", []insights.Outcome{at(1, 1, hour, ledger.Pass), at(2, 1, hour, ledger.Pass)}, 2, 0, 0},
		{"back and forth", []insights.Outcome{
			at(1, 1, hour, ledger.Pass), at(1, 2, 2*hour, ledger.Pass), at(1, 1, 3*hour, ledger.Pass),
		}, 3, 0, 0},
		{"a failed attempt", []insights.Outcome{at(1, 1, hour, ledger.Fail), at(1, 1, 2*hour, ledger.Pass)}, 1, 0, 0},
		{"a rollback", []insights.Outcome{at(1, 1, hour, ledger.Pass), at(1, 1, 2*hour, ledger.Fail)}, 1, 1, 0},
		{"a rollback on time", []insights.Outcome{
			at(1, 1, hour, ledger.Pass), at(1, 1, hour+insights.FailureWindow, ledger.Skip),
		}, 1, 1, 0},
		{"a late rollback", []insights.Outcome{
			at(1, 1, hour, ledger.Pass), at(1, 1, hour+insights.FailureWindow+time.Millisecond, ledger.Fail),
		}, 1, 0, 0},
		{"a rollback after the next", []insights.Outcome{
			at(1, 1, hour, ledger.Pass), at(1, 2, 2*hour, ledger.Pass), at(1, 1, 3*hour, ledger.Fail),
		}, 2, 1, 0},
		{"deployed again after a rollback", []insights.Outcome{
			at(1, 1, hour, ledger.Pass), at(1, 1, 2*hour, ledger.Fail), at(1, 1, 3*hour, ledger.Pass),
		}, 2, 1, 0},
		{"a failure elsewhere", []insights.Outcome{at(1, 1, hour, ledger.Pass), at(2, 1, 2*hour, ledger.Fail)}, 1, 0, 0},
		{"no outcome", []insights.Outcome{at(1, 1, hour, ledger.Pass), at(1, 1, 2*hour, ledger.Recorded)}, 1, 0, 0},
		{"a violation after it", []insights.Outcome{at(1, 1, hour, ledger.Pass), violation(1, 2, 2*hour)}, 1, 1, 1},
		{"a violation before it", []insights.Outcome{violation(1, 1, hour), at(1, 2, 2*hour, ledger.Pass)}, 1, 0, 1},
		{"a violation after the next", []insights.Outcome{
			at(1, 1, hour, ledger.Pass), at(1, 2, 2*hour, ledger.Pass), violation(1, 3, 3*hour),
		}, 2, 1, 1},
		{"in force again after a violation", []insights.Outcome{
			at(1, 1, hour, ledger.Pass), violation(1, 2, 2*hour), at(1, 1, 3*hour, ledger.Pass),
		}, 2, 1, 1},
	} {
		r := report(7, monday.Add(13*day))
		r.From = monday
		rand.Shuffle(len(test.outcomes), func(i, j int) {
			test.outcomes[i], test.outcomes[j] = test.outcomes[j], test.outcomes[i]
		})
		r.Add(nil, test.outcomes, nil)
		got := r.Deployments
		if got.Count != test.count || got.Failed != test.failed || got.Violations != test.violations {
			t.Errorf("%s: %+v, want %d, %d failed, %d violations", test.name, got, test.count, test.failed, test.violations)
		}
	}
}

// Attempts that failed and rollbacks are counted by themselves, in their weeks.
func TestAttemptsAndRollbacks(t *testing.T) {
	outcome := func(commit int64, after time.Duration, status ledger.Status, isRollback bool) insights.Outcome {
		return insights.Outcome{Place: 1, Commit: commit, At: monday.Add(after), Status: status, IsRollback: isRollback}
	}
	r := report(7, monday.Add(13*day))
	r.From = monday
	r.Add(nil, []insights.Outcome{
		outcome(1, -hour, ledger.Recorded, false), // before the report
		outcome(1, hour, ledger.Recorded, false),
		outcome(1, 2*hour, ledger.Pass, false),
		outcome(1, 8*day, ledger.Recorded, true),
		outcome(1, 9*day, ledger.Recorded, true), // it does not run any more
		outcome(1, 10*day, ledger.Recorded, false),
		outcome(2, 10*day, ledger.Pass, false),
		outcome(2, 11*day, ledger.Fail, false),
	}, nil)
	d, weeks := r.Deployments, r.Weeks
	if d.Count != 2 || d.Attempts != 2 || d.Rollbacks != 2 || d.Failed != 1 {
		t.Errorf("%+v, want 2 deployments, 2 attempts and 2 rollbacks", d)
	}
	if weeks[0].Attempts != 1 || weeks[1].Attempts != 1 || weeks[0].Rollbacks != 0 || weeks[1].Rollbacks != 2 {
		t.Errorf("weeks %+v", weeks)
	}
}

func TestLeadTimesAndStates(t *testing.T) {
	up := func(at time.Duration, from, to ledger.State) insights.Step {
		return insights.Step{From: from, To: to, At: monday.Add(at)}
	}
	r := report(7, monday.Add(13*day))
	r.From = monday
	r.Add([]insights.Commit{
		{Registered: monday, Committed: monday.Add(-2 * hour), Steps: []insights.Step{
			up(hour, ledger.Draft, ledger.Validating), up(hour, ledger.Validating, ledger.Attested),
			up(3*hour, ledger.Attested, ledger.Promotable), up(8*hour, ledger.Promotable, ledger.Deployed),
			up(9*hour, ledger.Deployed, ledger.Attested), up(11*hour, ledger.Attested, ledger.Deployed),
		}},
		{Registered: monday.Add(7 * day), Committed: monday.Add(30 * day), Steps: []insights.Step{
			up(7*day+4*hour, ledger.Draft, ledger.Deployed),
		}},
		{Registered: monday.Add(-2 * day), Steps: []insights.Step{up(-day, ledger.Draft, ledger.Deployed)}},
		{Registered: monday},
	}, nil, nil)

	ms := func(d time.Duration) int64 { return d.Milliseconds() }
	lead := insights.Spread{Count: 2, MedianMS: ms(4 * hour), P90MS: ms(10 * hour), P95MS: ms(10 * hour)}
	if r.LeadTime != lead {
		t.Errorf("lead time %+v, want %+v", r.LeadTime, lead)
	}
	if r.Weeks[0].LeadTime.MedianMS != ms(10*hour) || r.Weeks[1].LeadTime.MedianMS != ms(4*hour) {
		t.Errorf("weeks %+v", r.Weeks)
	}
	one := func(d time.Duration) insights.Spread { return insights.Spread{1, ms(d), ms(d), ms(d)} }
	want := []insights.StateTime{
		{ledger.Draft, insights.Spread{2, ms(hour), ms(4 * hour), ms(4 * hour)}},
		{ledger.Validating, insights.Spread{}},
		{ledger.Attested, insights.Spread{2, ms(2 * hour), ms(2 * hour), ms(2 * hour)}},
		{ledger.Promotable, one(5 * hour)},
	}
	if !reflect.DeepEqual(r.States, want) {
		t.Errorf("states %+v, want %+v", r.States, want)
	}
}

func TestPredicates(t *testing.T) {
	var results []insights.Result
	add := func(predicate string, n int, status ledger.Status, ms int64) {
		for range n {
			results = append(results, insights.Result{Predicate: predicate, Status: status, DurationMS: ms})
		}
	}
	add("test:go", 18, ledger.Pass, 1000)
	add("test:go", 1, ledger.Fail, 3000)
	add("test:go", 1, ledger.Errored, 0)
	add("test:go", 3, ledger.Skip, 0)
	add("test:go", 1, ledger.Warn, 5000)
	add("sbom:x", 1, ledger.Recorded, 0)
	for i := range 60 {
		add(fmt.Sprintf("many:%02d", i), 1, ledger.Pass, 0)
	}
	r := report(7, monday)
	r.Add(nil, nil, results)
	if len(r.Predicates) != insights.MaxPredicates {
		t.Fatalf("%d predicates", len(r.Predicates))
	}
	p := r.Predicates[0]
	if p.Predicate != "test:go" || p.Results != 24 || p.Passed != 18 || p.Failed != 2 || *p.PassRate != 0.9 ||
		p.Duration != (insights.Spread{20, 1000, 1000, 3000}) {
		t.Errorf("%+v, pass rate %v", p, *p.PassRate)
	}

	r = report(7, monday)
	r.Add(nil, nil, []insights.Result{{Predicate: "sbom:x", Status: ledger.Recorded}})
	if p := r.Predicates[0]; p.PassRate != nil || p.Results != 1 {
		t.Errorf("%+v", p)
	}
}

// TestDeploymentsAsDefined compares the figures with the definitions in docs/insights.md,
// read literally, on random outcomes.
func TestDeploymentsAsDefined(t *testing.T) {
	random := testenv.Rand(t)
	statuses := []ledger.Status{ledger.Pass, ledger.Pass, ledger.Pass, ledger.Fail, ledger.Skip, ledger.Recorded}
	for range 3000 {
		outcomes := make([]insights.Outcome, random.IntN(12))
		for i := range outcomes {
			o := &outcomes[i]
			o.Place, o.Commit, o.Status = random.Int64N(2), random.Int64N(3), statuses[random.IntN(len(statuses))]
			o.At = monday.Add(time.Duration(i)*2*day + hour)
			o.Violation = o.Status == ledger.Pass && random.IntN(4) == 0
		}
		r := report(1, monday.Add(28*day))
		r.From = monday
		r.Add(nil, outcomes, nil)

		var count, failed, violations int
		for i, o := range outcomes {
			switch {
			case o.Violation:
				violations++
			case isDeployment(outcomes, i):
				count++
				if hasFailed(outcomes, i) {
					failed++
				}
			}
		}
		got := r.Deployments
		if got.Count != count || got.Failed != failed || got.Violations != violations {
			t.Fatalf("%+v\ngive %+v, want %d, %d failed, %d violations", outcomes, got, count, failed, violations)
		}
	}
}

// isDeployment reports whether an outcome is a pass that counts, and not one of the commit
// that runs already: the latest that passed there, without a rollback since then.
func isDeployment(outcomes []insights.Outcome, i int) bool {
	o := outcomes[i]
	if o.Status != ledger.Pass || o.Violation {
		return false
	}
	for j := i - 1; j >= 0; j-- {
		before := outcomes[j]
		switch {
		case before.Place != o.Place:
		case before.Status == ledger.Pass:
			return before.Commit != o.Commit || before.Violation
		case before.Status != ledger.Recorded && before.Commit == o.Commit:
			return true
		}
	}
	return true
}

// hasFailed reports whether a deployment was rolled back in time, or a violation followed it
// in time and before the next deployment.
func hasFailed(outcomes []insights.Outcome, i int) bool {
	o := outcomes[i]
	isNext, isSame := false, false // whether another deployment followed, and one of the commit
	for j := i + 1; j < len(outcomes); j++ {
		after := outcomes[j]
		if after.Place != o.Place || after.At.Sub(o.At) > insights.FailureWindow {
			continue
		}
		rolledBack := after.Commit == o.Commit && after.Status != ledger.Pass && after.Status != ledger.Recorded
		if rolledBack && !isSame || after.Violation && !isNext {
			return true
		}
		if isDeployment(outcomes, j) {
			isNext, isSame = true, isSame || after.Commit == o.Commit
		}
	}
	return false
}
