package web

import (
	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/grid"
	"github.com/ledgerd/ledgerd/server/web/page"
)

// environmentsShown is the number of environments of a page. Those of a repo are not
// separated, since there are at most ledger.MaxEnvironments of each.
const environmentsShown = 100

// An environmentsPage shows what runs where.
type environmentsPage struct {
	Grid grid.Grid
	Next string
}

func showEnvironments(v *page.Visit) (*page.Response, error) {
	list, err := v.API.EnvironmentsPage(v.Ctx(), v.Org, client.EnvironmentFilter{},
		client.Query{Limit: environmentsShown, Cursor: v.Query("cursor")})
	if err != nil {
		return nil, err
	}
	p := environmentsPage{Grid: grid.Of(list.Data), Next: v.NextPage(list.NextCursor)}
	return v.LivePage("environments", "Environments", p, ledger.EventAttestation, ledger.EventState, ledger.EventStanding,
		ledger.EventViolation), nil
}

// violationsShown is the number of violations on a page of their list.
const violationsShown = 50

// A violationsPage lists the violations of an org, or of a repo.
type violationsPage struct {
	At         string // path of the page
	All        bool   // also those that are closed
	Violations []ledger.Violation
	Older      string
}

func showViolations(v *page.Visit) (*page.Response, error) {
	p := violationsPage{At: v.Request.URL.EscapedPath(), All: v.Query("status") == "all"}
	f := client.ViolationFilter{Repo: v.Repo, Status: ledger.ViolationOpen}
	if p.All {
		f.Status = ""
	}
	list, err := v.API.ViolationsPage(v.Ctx(), v.Org, f, client.Query{Limit: violationsShown, Cursor: v.Query("cursor")})
	if err != nil {
		return nil, err
	}
	p.Violations, p.Older = list.Data, v.NextPage(list.NextCursor)
	return v.LivePage("violations", "Violations", p, ledger.EventViolation), nil
}
