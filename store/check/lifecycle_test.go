package check_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/check"
)

// Orgs and repos that were renamed, archived, deleted or restored are no problem: events have the
// names of their time.
func TestLifecyclesAreChecked(t *testing.T) {
	d := newDatabase(t, 3)
	s := must.Get(store.Open(t.Context(), d.path, store.Options{}))(t)
	ctx := t.Context()
	rename := func(org, repo, name string) {
		t.Helper()
		_, err := s.ChangeRepo(ctx, org, repo, ledger.RepoChange{Name: &name})
		must.OK(t, err)
	}

	rename("acme", "api", "core")
	rename("acme", "core", "heart")
	_, err := s.ChangeRepo(ctx, "acme", "heart", ledger.RepoChange{Archived: new(true)})
	must.OK(t, err)
	must.OK(t, s.DeleteRepo(ctx, "acme", "web"))
	must.OK(t, s.Settle(ctx))
	wantNoProblems(t, d)

	rename("acme", "~2", "web")
	must.OK(t, s.DeleteOrg(ctx, "acme"))
	must.OK(t, s.Settle(ctx))
	wantNoProblems(t, d)
	_, err = s.ChangeOrg(ctx, "~1", ledger.OrgChange{Name: new("acme")})
	must.OK(t, err)
	must.OK(t, s.Settle(ctx))
	must.OK(t, s.Close())
	wantNoProblems(t, d)
}

func wantNoProblems(t *testing.T, d database) {
	t.Helper()
	for _, problem := range d.problems(t) {
		t.Error(problem)
	}
}

// What was pruned is counted, and its digest compared with its event.
func TestPrunedIsChecked(t *testing.T) {
	d := newDatabase(t, 3)
	later := time.Now().Add(48 * time.Hour)
	open := func() *store.Store {
		t.Helper()
		return must.Get(store.Open(t.Context(), d.path, store.Options{Now: func() time.Time { return later }}))(t)
	}
	s := open()
	prune := func(keep ledger.RetentionChange) check.Report {
		t.Helper()
		_, err := s.ChangeRepo(t.Context(), "acme", "api", ledger.RepoChange{Retention: &keep})
		must.OK(t, err)
		must.OK(t, s.Settle(t.Context()))
		report, err := check.Run(t.Context(), d.path, check.Options{})
		must.OK(t, err)
		for _, problem := range report.Problems {
			t.Error(problem)
		}
		pruned := fmt.Sprintf("what was pruned: events %d, envelopes %d", report.Pruned, report.PrunedEnvelopes)
		if !slices.Contains(report.Unchecked, pruned) {
			t.Errorf("not checked: %q, want %q among them", report.Unchecked, pruned)
		}
		return report
	}

	if r := prune(ledger.RetentionChange{Envelopes: new(ledger.MinRetention)}); r.PrunedEnvelopes == 0 || r.Pruned != 0 {
		t.Errorf("%d envelopes and %d events were pruned, want some envelopes only", r.PrunedEnvelopes, r.Pruned)
	}
	must.OK(t, s.Close())
	changed := d.copy(t, run("UPDATE envelopes SET body = randomblob(32) WHERE payload_at = -1"))
	changed.wantProblem(t, check.Options{}, "digests acme attestation att_", ": the envelope has the digest sha256:")

	s = open()
	hooks, err := s.Webhooks(t.Context(), "acme", "api", store.Query{Limit: 10})
	must.OK(t, err)
	for _, hook := range hooks.Data { // whose deliveries keep the events
		must.OK(t, s.DeleteWebhook(t.Context(), "acme", "api", hook.ID))
	}
	if r := prune(ledger.RetentionChange{Events: new(ledger.MinRetention)}); r.PrunedEnvelopes == 0 || r.Pruned == 0 {
		t.Errorf("%d envelopes and %d events were pruned, want some of both", r.PrunedEnvelopes, r.Pruned)
	}
	must.OK(t, s.Close())
}
