// Package home has the pages of an org: its repos, and what needs attention.
package home

import (
	"net/http"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/page"
)

// Routes returns the routes of the package.
func Routes() []page.Route {
	return []page.Route{
		{Method: http.MethodGet, Pattern: page.OrgPattern, Scope: ledger.Read, Handle: showOrg, Live: true},
		page.Live(page.AttentionPattern, ledger.Read, showAttention),
	}
}
