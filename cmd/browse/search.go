package browse

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/display"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/insights"
	"github.com/ledgerd/ledgerd/ledger/search"
)

func newSearch(p *cli.Program) *cobra.Command {
	var cursor string
	var limit int
	command := p.ForOrg(&cobra.Command{
		Use:   "search",
		Short: "Find commits, branches, repos, predicates, signers, digests and IDs",
		Long: `Finds what people know of a record: words of the subject of a commit, a
branch, an author, a repo, a predicate, a signer; a commit ID or a digest
from 7 digits; or the ID of an attestation, event, identity or webhook.

Words are compared with the newest commits. --cursor goes on with older ones.`,
		Example: `  ledgerd search login --org acme
  ledgerd search 5d3d360
  ledgerd search sha256:e3b0c44`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("QUERY is required")
			}
			return nil
		},
	}, func(ctx context.Context, c *cli.Connection, org string, args []string) error {
		found, err := c.Search(ctx, org, strings.Join(args, " "), client.Query{Limit: limit, Cursor: cursor})
		if err != nil {
			return err
		}
		return p.Print(found, func() { printFound(p, found) })
	}, "QUERY")
	command.Flags().IntVar(&limit, "limit", 20, "maximum number of results of each type, up to 100")
	command.Flags().StringVar(&cursor, "cursor", "", "continue with older commits, with the `cursor` of the last search")
	return command
}

// printFound prints what was found, and how to find more.
func printFound(p *cli.Program, found search.Result) {
	t := terminal.NewTable(p.Stdout, "TYPE", "REPO", "COMMIT", "STATE", "TITLE", "DETAIL")
	for _, h := range found.Data {
		id, state := ledger.Short(h.Commit), any("")
		if h.ID != "" {
			id = h.ID
		}
		if h.State != nil {
			state = *h.State
		}
		t.Row(h.Type, h.Repo, id, state, h.Title, h.Detail)
	}
	t.Flush()

	hints := p.Hints()
	if len(found.More) > 0 {
		terminal.Printf(hints, "There are more results (of the type %s): use a longer query, or --limit.\n", found.More[0])
	}
	switch {
	case found.NextCursor != "":
		terminal.Printf(hints, "%d of the newest commits were compared. To go on with older ones: --cursor %s\n",
			found.Examined, found.NextCursor)
	case found.Stopped != "":
		terminal.Printf(hints, "Not everything was searched: %s.\n", found.Stopped)
	}
}

func newInsights(p *cli.Program) *cobra.Command {
	var org, repo string
	var days int
	command := &cobra.Command{
		Use:   "insights",
		Short: "Show lead time, deployments, and how checks fare",
		Long: `Shows deployments and lead time by week, how long commits stay in each state, and
the pass rate and duration of checks. docs/insights.md defines the figures.`,
		Example: "  ledgerd insights --org acme --days 30",
		RunE: func(command *cobra.Command, _ []string) error {
			if days < 1 || days > insights.MaxDays {
				return cli.Usagef("invalid --days %d: use 1 to %d", days, insights.MaxDays)
			}

			var orgs []string
			if org != "" {
				orgs = []string{org}
			}
			return p.WithOrgArg(command, orgs, &repo, func(ctx context.Context, c *cli.Connection, org string) error {
				report, err := c.Insights(ctx, org, repo, days)
				if err != nil {
					return err
				}
				return p.Print(report, func() { printInsights(p, report) })
			})
		},
	}
	cli.OrgFlag(command, &org)
	command.Flags().StringVar(&repo, "repo", "", "only this `repo`, as REPO or ORG/REPO")
	command.Flags().IntVar(&days, "days", insights.DefaultDays, "number of `days`, up to 365")
	return command
}

// printInsights prints a report for people.
func printInsights(p *cli.Program, r insights.Report) {
	t := terminal.NewTable(p.Stdout, "WEEK OF", "DEPLOYMENTS", "FAILED", "VIOLATIONS", "LEAD TIME", "90%")
	for _, w := range r.Weeks {
		t.Row(w.Start.Std().Format(time.DateOnly), w.Count, w.Failed, w.Violations, took(w.LeadTime, w.LeadTime.MedianMS),
			took(w.LeadTime, w.LeadTime.P90MS))
	}
	t.Row("all", r.Deployments.Count, r.Deployments.Failed, r.Deployments.Violations,
		took(r.LeadTime, r.LeadTime.MedianMS), took(r.LeadTime, r.LeadTime.P90MS))
	t.Flush()

	fmt.Fprintln(p.Stdout)
	t = terminal.NewTable(p.Stdout, "STATE", "LEFT", "TIME", "90%")
	for _, s := range r.States {
		t.Row(s.State, s.Time.Count, took(s.Time, s.Time.MedianMS), took(s.Time, s.Time.P90MS))
	}
	t.Flush()

	fmt.Fprintln(p.Stdout)
	t = terminal.NewTable(p.Stdout, "PREDICATE", "RESULTS", "FAILED", "PASS RATE", "DURATION", "95%")
	for _, c := range r.Predicates {
		rate := "-"
		if c.PassRate != nil {
			rate = fmt.Sprintf("%.1f%%", 100**c.PassRate)
		}
		t.Row(c.Predicate, c.Results, c.Failed, rate, took(c.Duration, c.Duration.MedianMS),
			took(c.Duration, c.Duration.P95MS))
	}
	t.Flush()
	for _, s := range []insights.Sample{r.Samples.Commits, r.Samples.Deployments, r.Samples.Results} {
		if s.Reason != "" {
			terminal.Printf(p.Hints(), "Not complete: %s.\n", s.Reason)
		}
	}
}

// took returns a quantile of a spread, or - if it has no values.
func took(s insights.Spread, ms int64) string {
	if s.Count == 0 {
		return "-"
	}
	switch d := display.Milliseconds(ms); {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	case d >= time.Minute:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	default:
		return d.String()
	}
}
