package browse

import (
	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/page"
)

// environmentsShown is the number of environments of a page. Those of a repo are not
// separated, since there are at most ledger.MaxEnvironments of each.
const environmentsShown = 100

// An environmentsPage shows what runs where.
type environmentsPage struct {
	Grid grid
	Next string
}

func showEnvironments(v *page.Visit) (*page.Response, error) {
	list, err := v.API.EnvironmentsPage(v.Ctx(), v.Org, client.EnvironmentFilter{},
		client.Query{Limit: environmentsShown, Cursor: v.Query("cursor")})
	if err != nil {
		return nil, err
	}
	p := environmentsPage{Grid: gridOf(list.Data), Next: v.NextPage(list.NextCursor)}
	return v.LivePage("environments", "Environments", p, ledger.EventAttestation, ledger.EventState, ledger.EventStanding,
		ledger.EventViolation), nil
}
