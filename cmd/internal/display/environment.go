package display

import (
	"fmt"
	"strconv"
	"time"

	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

// EnvironmentHelp returns the help of the command that lists environments.
func EnvironmentHelp() string {
	return `Lists what runs where: for each repo and predicate deploy:NAME, the latest
deployment that counts. It counts if it met a DEPLOYED requirement when it was
recorded, or if no DEPLOYED requirement names its predicate; then REQUIRED is no.
After a rollback, the previous deployment is shown. Without one, COMMIT is the
baseline and STATE is "baseline" (see 'ledgerd environment baseline'). If there
is no baseline either, STATE is "rolled back".

STATE is the present state of the commit, and AGE the time since the deployment,
the baseline or the rollback was recorded. BEHIND is the number of commits with
the same target branch that were registered later and are PROMOTABLE or
DEPLOYED.
VIOLATIONS is the number of open violations: deployments that did not count, but
may be what runs.

Of each repo, the 50 environments that were changed last are listed; with --repo,
all.`
}

// EnvironmentColumns are the columns of EnvironmentRows.
func EnvironmentColumns() []string {
	return []string{"REPO", "ENVIRONMENT", "COMMIT", "STATE", "AGE", "BEHIND", "REQUIRED", "VIOLATIONS"}
}

// EnvironmentRows returns a function that returns the cells of an environment at the time
// now.
func EnvironmentRows(now time.Time) func(ledger.Environment) []any {
	return func(e ledger.Environment) []any {
		violations := counted(e.OpenViolations, e.OpenViolations == ledger.MaxEnvironmentViolations)
		if e.Violation != nil {
			violations += " (" + ledger.Short(e.Violation.Commit) + ")"
		}

		d := e.Deployment
		if d == nil {
			commit, state, since := "-", "-", "-"
			switch {
			case e.Baseline != nil:
				commit, state, since = ledger.Short(e.Baseline.Commit), "baseline", age(now, e.Baseline.At)
			case e.Rollback != nil:
				state, since = "rolled back", age(now, e.Rollback.At)
			}
			return []any{e.Repo, e.Name, commit, state, since, "-", "-", violations}
		}
		required := "yes"
		if !d.Required {
			required = "no"
		}
		return []any{e.Repo, e.Name, ledger.Short(d.Commit), terminal.State(d.State, d.Standing), age(now, d.DeployedAt),
			counted(d.Behind, d.BehindMore), required, violations}
	}
}

// counted returns a number, with a plus sign if there may be more.
func counted(n int, more bool) string {
	if more {
		return fmt.Sprintf("%d+", n)
	}
	return strconv.Itoa(n)
}

// age returns the time since t in its largest unit, such as 5d.
func age(now time.Time, t ledger.Time) string {
	switch d := max(0, ledger.TimeOf(now).Sub(t)); {
	case d >= 24*time.Hour:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	case d >= time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d >= time.Minute:
		return fmt.Sprintf("%dm", d/time.Minute)
	default:
		return fmt.Sprintf("%ds", d/time.Second)
	}
}
