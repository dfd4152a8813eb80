package browse

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/insights"
	"github.com/ledgerd/ledgerd/server/web/draw"
	"github.com/ledgerd/ledgerd/server/web/format"
	"github.com/ledgerd/ledgerd/server/web/page"
)

// An insightsPage shows the figures of an org or a repo.
type insightsPage struct {
	Form       *page.Form
	Repos      []page.Choice
	Days       []page.Choice
	Filtered   bool
	Report     insights.Report
	PerWeek    string // deployments per week, or of how many weeks
	FailRate   string // empty if there are no deployments
	Predicates []predicate
	// Charts of weeks, and of states.
	Deployments, LeadTime, States *draw.Chart
	// Notes say which rows are missing.
	Notes []note
}

// A note says which rows of a sample are missing.
type note struct {
	Figures string
	insights.Sample
}

// A predicate is one with its pass rate as text and in percent.
type predicate struct {
	insights.Predicate
	Rate    string
	Percent float64
}

func showInsights(v *page.Visit) (*page.Response, error) {
	days, err := strconv.Atoi(v.Query("days"))
	if v.Query("days") == "" {
		days, err = insights.DefaultDays, nil
	}
	if err != nil || days < 1 || days > insights.MaxDays {
		return nil, ledger.FieldErrorf(ledger.CodeInvalidField, "days", "use 1 to %d", insights.MaxDays)
	}
	repo := v.Query("repo")
	p := insightsPage{Form: page.NewForm("repo", repo, "days", strconv.Itoa(days)), Filtered: repo != ""}
	if p.Repos, err = v.RepoChoices(repo); err != nil {
		return nil, err
	}
	p.Days = dayChoices(days)

	if p.Report, err = v.API.Insights(v.Ctx(), v.Org, repo, days); err != nil {
		return nil, err
	}
	p.setFigures()
	p.draw()
	return v.Page("insights", "Insights", p), nil
}

func dayChoices(chosen int) (choices []page.Choice) {
	list := []int{7, 30, 90, 180, 365}
	if !slices.Contains(list, chosen) {
		list = append(list, chosen)
		slices.Sort(list)
	}
	for _, n := range list {
		choices = append(choices, page.Choice{Value: strconv.Itoa(n), Label: "Last " + format.Plural(n, "day")})
	}
	return choices
}

// setFigures sets the figures as text.
func (p *insightsPage) setFigures() {
	r := p.Report
	p.PerWeek = "in " + format.Plural(len(r.Weeks), "week")
	if n := r.Deployments.Count; n > 0 {
		p.PerWeek = strconv.FormatFloat(float64(n)/float64(len(r.Weeks)), 'f', 1, 64) + " per week"
	}
	if rate := r.Deployments.FailRate; rate != nil {
		p.FailRate = percent(*rate)
	}
	for _, pr := range r.Predicates {
		shown := predicate{Predicate: pr}
		if pr.PassRate != nil {
			shown.Rate, shown.Percent = percent(*pr.PassRate), 100**pr.PassRate
		}
		p.Predicates = append(p.Predicates, shown)
	}

	s := r.Samples
	for _, n := range []note{
		{"Lead time and time in state", s.Commits}, {"Deployments", s.Deployments}, {"Checks", s.Results},
	} {
		if n.Reason != "" {
			p.Notes = append(p.Notes, n)
		}
	}
}

// percent returns a share in percent. It is 100 % or 0 % only if it is all or nothing.
func percent(share float64) string {
	p := 100 * share
	if p > 0 && p < 10 || p > 90 && p < 100 {
		return strconv.FormatFloat(p, 'f', 1, 64) + " %"
	}
	return strconv.FormatFloat(p, 'f', 0, 64) + " %"
}

// draw draws the charts.
func (p *insightsPage) draw() {
	r := p.Report
	labels := make([]string, len(r.Weeks))
	succeeded, failed := draw.Series{Class: "good"}, draw.Series{Class: "bad"}
	median, p90 := draw.Series{Class: "median"}, draw.Series{Class: "p90"}
	for i, w := range r.Weeks {
		labels[i] = w.Start.Std().Format("2 Jan")
		of := "Week of " + w.Start.Std().Format("2 January 2006") + ": "
		title := of + format.Plural(w.Count, "deployment") + ", " + strconv.Itoa(w.Failed) + " failed"
		succeeded.Values = append(succeeded.Values, draw.Value{Value: float64(w.Count - w.Failed), Title: title})
		failed.Values = append(failed.Values, draw.Value{Value: float64(w.Failed), Title: title})

		l := w.LeadTime
		title = of + "median " + format.Duration(l.MedianMS) + ", 90 % within " + format.Duration(l.P90MS) + " (" +
			format.Plural(l.Count, "commit") + ")"
		median.Values = append(median.Values, draw.Value{Value: float64(l.MedianMS), Missing: l.Count == 0, Title: title})
		p90.Values = append(p90.Values, draw.Value{Value: float64(l.P90MS), Missing: l.Count == 0, Title: title})
	}

	p.Deployments = draw.Columns(labels, succeeded, failed)
	p.Deployments.Title = "Deployments per week"
	p.Deployments.Text = fmt.Sprintf("%s in %s, %d of them failed.", format.Plural(r.Deployments.Count, "deployment"),
		format.Plural(len(r.Weeks), "week"), r.Deployments.Failed)
	p.LeadTime = draw.Durations(labels, p90, median)
	p.LeadTime.Title = "Lead time per week"
	p.LeadTime.Text = "Median " + format.Duration(r.LeadTime.MedianMS) + ", 90 % within " +
		format.Duration(r.LeadTime.P90MS) + "."

	var rows []draw.Range
	for _, s := range r.States {
		row := draw.Range{Name: format.State(s.State), Class: "state s-" + strings.ToLower(s.State.String()),
			Low: float64(s.Time.MedianMS), High: float64(s.Time.P90MS), Label: "no commit left it"}
		if s.Time.Count > 0 {
			row.Label = format.Duration(s.Time.MedianMS) + " · 90 % within " + format.Duration(s.Time.P90MS)
			row.Title = row.Name + ": median " + row.Label + " (" + format.Plural(s.Time.Count, "stay") + ")"
		}
		rows = append(rows, row)
	}
	p.States = draw.Ranges(rows)
	p.States.Title, p.States.Text = "Time in state", "How long commits stayed in each state before they left it."
}
