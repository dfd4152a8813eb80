// Package browse has the pages on which a person looks through an org: environments, activity, violations,
// insights, the transparency log and the search. Those of violations are also pages of repos.
package browse

import (
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/page"
)

// Routes returns the routes of the package.
func Routes() []page.Route {
	const read = ledger.Read
	return []page.Route{
		page.Live(page.EnvironmentsPattern, read, showEnvironments),
		page.Live(page.ActivityPattern, read, showActivity),
		page.Live(page.OrgViolationsPattern, read, showViolations),
		page.Live(page.RepoViolationsPattern, read, showViolations),
		page.Get(page.InsightsPattern, read, showInsights),
		page.Get(page.SearchPattern, read, showSearch),
		page.Get(page.LogPattern, read, showLog),
	}
}
