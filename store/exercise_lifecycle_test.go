package store_test

import (
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/store"
)

// lifecycles renames, archives, deletes and restores an org with a repo and a webhook.
func (e *exerciser) lifecycles() {
	ctx, list := e.t.Context(), store.Query{Limit: 10}
	rename := func(org, repo, name string) { e.ok(e.ChangeRepo(ctx, org, repo, ledger.RepoChange{Name: &name})) }
	e.ok(e.CreateOrg(ctx, "initech"))
	e.ok(e.CreateRepo(ctx, "initech", ledger.NewRepo{Name: "tps"}, "host"))
	hook := outbound.NewWebhook{URL: "https://hooks.example.com/", Events: ledger.DefaultEventTypes()}
	e.ok(e.CreateWebhook(ctx, "initech", "tps", hook, "whsec_secret"))

	rename("initech", "tps", "reports")
	if _, err := e.Repo(ctx, "initech", "tps"); err == nil {
		e.t.Error("a renamed repo has its former name")
	}
	e.ok(e.ChangeRepo(ctx, "initech", "reports", ledger.RepoChange{Archived: new(true)}))
	must.OK(e.t, e.DeleteRepo(ctx, "initech", "reports"))
	deleted, err := e.DeletedRepos(ctx, "initech", list)
	must.OK(e.t, err)
	rename("initech", deleted.Data[0].Name, "reports")

	e.ok(e.ChangeOrg(ctx, "initech", ledger.OrgChange{Archived: new(true)}))
	must.OK(e.t, e.DeleteOrg(ctx, "initech"))
	orgs, err := e.DeletedOrgs(ctx, list)
	must.OK(e.t, err)
	e.ok(e.ChangeOrg(ctx, orgs.Data[0].Name, ledger.OrgChange{Name: new("initrode")}))

	must.OK(e.t, e.DeleteRepo(ctx, "initrode", "reports"))
	deleted, err = e.DeletedRepos(ctx, "initrode", list)
	must.OK(e.t, err)
	must.OK(e.t, e.PurgeRepo(ctx, "initrode", deleted.Data[0].Name))
	must.OK(e.t, e.DeleteOrg(ctx, "initrode"))
	must.OK(e.t, e.PurgeOrg(ctx, orgs.Data[0].Name))
}

// retention prunes envelopes and events of a repo, and reads what they were.
func (e *exerciser) retention() {
	ctx := e.t.Context()
	for _, repo := range []string{"acme/api", "acme/web", "umbrella/web"} {
		org, name, _ := strings.Cut(repo, "/")
		e.ok(e.ChangeRepo(ctx, org, name, ledger.RepoChange{Retention: &ledger.RetentionChange{
			Envelopes: new(ledger.MinRetention), Events: new(ledger.MinRetention), Deliveries: new(ledger.MinRetention),
		}}))
	}
	e.now = e.now.Add(48 * time.Hour)
	must.OK(e.t, e.Settle(ctx))
	must.OK(e.t, e.Prune(ctx))
	l, err := e.Log(ctx, "acme", 0)
	must.OK(e.t, err)
	must.OK(e.t, e.SaveCheckpoint(ctx, l, l.Leaves, []byte("signed")))
	e.ok(e.Gate(ctx, store.DecisionQuery{Org: "acme", Repo: "api", Commit: sha(1), State: new(ledger.Draft),
		Environment: "none"}))
	e.ok(e.Decide(ctx, store.DecisionQuery{Org: "acme", Repo: "api", Commit: deployedCommit, Validity: time.Hour}))
}
