package web

import (
	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
)

// An orgPage shows the repos of an org.
type orgPage struct {
	Repos []ledger.Repo
}

func showOrg(v *visit) (*answer, error) {
	repos, err := client.Collect(v.api.Repos(v.ctx(), v.org), 0)
	if err != nil {
		return nil, err
	}
	return v.livePage("org", v.org, orgPage{Repos: repos}, ledger.EventTypes()...), nil
}
