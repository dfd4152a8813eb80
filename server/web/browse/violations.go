package browse

import (
	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/page"
)

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
