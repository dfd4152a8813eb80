// Package policies has the pages of a repo's policy: the active version, the history
// and the editor.
package policies

import (
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/page"
)

const versionsPattern = page.PolicyPattern + "/versions"

// Routes returns the routes of the package.
func Routes() []page.Route {
	return []page.Route{
		page.Live(page.PolicyPattern, ledger.Read, showPolicy),
		page.Live(versionsPattern, ledger.Read, showPolicyVersions),
		page.Get(versionsPattern+"/{version}", ledger.Read, showPolicyVersion),
		page.Get(page.EditPolicyPattern, ledger.Maintain, editPolicy),
		page.Post(page.EditPolicyPattern, ledger.Maintain, changePolicy),
	}
}
