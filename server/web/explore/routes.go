// Package explore has the pages that search an org, and that chart its figures.
package explore

import (
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/page"
)

// Routes returns the routes of the package.
func Routes() []page.Route {
	return []page.Route{
		page.Get(page.SearchPattern, ledger.Read, showSearch),
		page.Get(page.InsightsPattern, ledger.Read, showInsights),
	}
}
