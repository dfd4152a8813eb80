package store_test

import (
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
)

// lifecycles renames, archives, deletes and restores an org with a repo and a webhook.
func (e *exerciser) lifecycles() {
	ctx, list := e.t.Context(), store.Query{Limit: 10}
	rename := func(org, repo, name string) { e.ok(e.ChangeRepo(ctx, org, repo, ledger.RepoChange{Name: &name})) }
	e.ok(e.CreateOrg(ctx, "initech"))
	e.ok(e.CreateRepo(ctx, "initech", ledger.NewRepo{Name: "tps"}, "host"))
	hook := ledger.NewWebhook{URL: "https://hooks.example.com/", Events: ledger.DefaultEventTypes()}
	e.ok(e.CreateWebhook(ctx, "initech", "tps", hook, "whsec_secret"))

	rename("initech", "tps", "reports")
	if _, err := e.Repo(ctx, "initech", "tps"); err == nil {
		e.t.Error("a renamed repo has its former name")
	}
	e.ok(e.ChangeRepo(ctx, "initech", "reports", ledger.RepoChange{Archived: new(true)}))
	check(e.t, e.DeleteRepo(ctx, "initech", "reports"))
	deleted, err := e.DeletedRepos(ctx, "initech", list)
	check(e.t, err)
	rename("initech", deleted.Data[0].Name, "reports")

	e.ok(e.ChangeOrg(ctx, "initech", ledger.OrgChange{Archived: new(true)}))
	check(e.t, e.DeleteOrg(ctx, "initech"))
	orgs, err := e.DeletedOrgs(ctx, list)
	check(e.t, err)
	e.ok(e.ChangeOrg(ctx, orgs.Data[0].Name, ledger.OrgChange{Name: new("initrode")}))
}
