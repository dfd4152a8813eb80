package states

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// environments lists the environments that a filter selects, with pages of q.Limit.
func (fx *fixture) environments(f store.EnvironmentFilter) (list []ledger.Environment) {
	fx.T.Helper()
	for {
		page, err := fx.Environments(fx.T.Context(), "acme", f)
		must.OK(fx.T, err)
		list = append(list, page.Data...)
		if f.Cursor = page.NextCursor; f.Cursor == "" {
			return list
		}
	}
}

// wantEnvironments checks what runs where: for each environment of acme/api its name, the
// number of the commit, and what else differs from the usual.
func (fx *fixture) wantEnvironments(want ...string) {
	fx.T.Helper()
	var got []string
	for _, e := range fx.environments(store.EnvironmentFilter{Query: store.Query{Limit: 500}}) {
		got = append(got, environmentText(e))
	}
	if !slices.Equal(got, want) {
		fx.T.Errorf("environments %q, want %q", got, want)
	}
}

// environmentText returns an environment as a line of text.
func environmentText(e ledger.Environment) string {
	text := e.Name
	if d := e.Deployment; d == nil {
		text += " unknown"
	} else {
		text += fmt.Sprintf(" %s %s", number(d.Commit), d.State)
		if d.Behind > 0 || d.BehindMore {
			text += fmt.Sprintf(" behind %d", d.Behind)
		}
		if d.BehindMore {
			text += "+"
		}
		if !d.Required {
			text += " not required"
		}
	}

	if e.Baseline != nil {
		text += " baseline " + number(e.Baseline.Commit)
	}
	if e.Rollback != nil {
		text += " after " + number(e.Rollback.Commit)
	}
	if e.OpenViolations > 0 {
		text += fmt.Sprintf(" violations %d, %s", e.OpenViolations, number(e.Violation.Commit))
	}
	return text
}

// number returns the number of a commit whose id is sha(number).
func number(commit string) string {
	for n := range 1000 {
		if sha(n) == commit {
			return fmt.Sprint(n)
		}
	}
	return commit
}

// Each environment has the latest deployment that counts. One that does not count is shown
// as a violation until something closes it.
func (s suite) TestEnvironments(t *testing.T) {
	fx := s.newFixture(t)
	fx.SetContract(`{"requirements":[{"state":"PROMOTABLE","predicate":"test:*"},
{"state":"DEPLOYED","predicate":"deploy:prod","signers":["cn=cd"]}]}`)
	cd, mallory := fx.NewSigner("cn=cd,ou=x,o=acme"), fx.NewSigner("cn=mallory,ou=x,o=acme")
	fx.wantEnvironments()
	for n := range 3 {
		mallory.Attest(sha(n), "test:go", ledger.Pass)
	}

	// A predicate that no DEPLOYED requirement names, and one that has failed.
	mallory.Attest(sha(1), "deploy:staging", ledger.Pass)
	mallory.Attest(sha(1), "deploy:test", ledger.Fail)
	fx.wantEnvironments("staging 1 PROMOTABLE behind 1 not required")

	mallory.Attest(sha(1), "deploy:staging", ledger.Fail)
	fx.wantEnvironments("staging unknown after 1")
	mallory.Attest(sha(1), "deploy:staging", ledger.Pass)

	first := cd.Attest(sha(0), "deploy:prod", ledger.Pass)
	fx.wantEnvironments("prod 0 DEPLOYED behind 2", "staging 1 PROMOTABLE behind 1 not required")
	mallory.Attest(sha(2), "deploy:prod", ledger.Pass)
	mallory.Attest(sha(2), "deploy:prod", ledger.Pass)
	fx.wantEnvironments("prod 0 DEPLOYED behind 2 violations 1, 2", "staging 1 PROMOTABLE behind 1 not required")
	cd.Attest(sha(2), "deploy:prod", ledger.Pass)
	fx.wantEnvironments("prod 2 DEPLOYED", "staging 1 PROMOTABLE behind 1 not required")

	// The same commit again, and an older one again.
	cd.Attest(sha(0), "deploy:prod", ledger.Pass)
	fx.wantEnvironments("prod 0 DEPLOYED behind 2", "staging 1 PROMOTABLE behind 1 not required")
	d := fx.environments(store.EnvironmentFilter{Query: store.Query{Limit: 1}, Name: "prod"})[0].Deployment
	if d.Attestation <= first.ID || d.DeployedAt <= first.RecordedAt || d.Identity != cd.DN {
		t.Errorf("deployment %+v, want the latest of the commit, by %s", d, cd.DN)
	}

	// Another policy: what was recorded is not judged again.
	fx.SetContract(`{"requirements":[{"state":"PROMOTABLE","predicate":"test:*"},
{"state":"DEPLOYED","predicate":"deploy:staging"}]}`)
	fx.wantEnvironments("prod 0 DEPLOYED behind 2", "staging 1 DEPLOYED behind 1 not required")
	mallory.Attest(sha(2), "deploy:prod", ledger.Pass)
	fx.wantEnvironments("prod 2 DEPLOYED not required", "staging 1 DEPLOYED behind 1 not required")
}

// A rollback takes the environment back to the deployment before it.
func (s suite) TestRollbackOfEnvironments(t *testing.T) {
	fx, cd, mallory := s.deployable(t)
	for n := range 3 {
		cd.Attest(sha(n), "test:go", ledger.Pass)
		cd.Attest(sha(n), "deploy:prod", ledger.Pass)
	}
	fx.wantEnvironments("prod 2 DEPLOYED")
	mallory.Attest(sha(2), "deploy:prod", ledger.Fail) // who may not deploy
	cd.Attest(sha(2), "deploy:eu", ledger.Fail)        // not deployed there; the commit is no longer DEPLOYED
	fx.wantEnvironments("prod 2 PROMOTABLE")

	cd.Attest(sha(2), "deploy:prod", ledger.Fail)
	fx.wantEnvironments("prod 1 DEPLOYED behind 1 after 2")
	cd.Attest(sha(0), "deploy:prod", ledger.Fail)
	fx.wantEnvironments("prod 1 DEPLOYED behind 1 after 0")
	cd.Attest(sha(1), "deploy:prod", ledger.Errored)
	fx.wantEnvironments("prod unknown after 1")
	cd.Attest(sha(0), "deploy:prod", ledger.Pass)
	fx.wantEnvironments("prod 0 DEPLOYED behind 2")

	// What runs is unknown from the start.
	mallory.Attest(sha(0), "deploy:eu", ledger.Pass)
	mallory.Attest(sha(1), "deploy:eu", ledger.Pass)
	fx.wantEnvironments("eu unknown violations 2, 1", "prod 0 DEPLOYED behind 2")
	cd.Attest(sha(1), "deploy:eu", ledger.Fail)
	fx.wantEnvironments("eu unknown", "prod 0 DEPLOYED behind 2")
}

// A deployment does not count if its identity is distrusted since before it.
func (s suite) TestDistrustedDeployments(t *testing.T) {
	fx, cd, _ := s.deployable(t)
	other := fx.NewSigner("cn=cd,ou=other,o=acme")
	for n := range 3 {
		cd.Attest(sha(n), "test:go", ledger.Pass)
	}
	cd.Attest(sha(0), "deploy:prod", ledger.Pass)
	other.Attest(sha(1), "deploy:prod", ledger.Pass)
	stolen := other.Attest(sha(2), "deploy:prod", ledger.Pass)
	fx.wantEnvironments("prod 2 DEPLOYED")

	fx.distrust(other, stolen.RecordedAt)
	must.OK(t, fx.Settle(t.Context()))
	fx.wantEnvironments("prod 1 DEPLOYED behind 1")
}

// An exception that closes a violation makes its deployment count.
func (s suite) TestExceptionMakesDeploymentCount(t *testing.T) {
	fx := s.newFixture(t)
	fx.SetContract(`{"requirements":[{"state":"PROMOTABLE","predicate":"test:*"},
{"state":"DEPLOYED","predicate":"deploy:prod","signers":["cn=cd"],"name":"live"}],
"exceptions":{"signers":["cn=boss"],"max_duration":"1d"}}`)
	cd, boss := fx.NewSigner("cn=cd,ou=x,o=acme"), fx.NewSigner("cn=boss,ou=x,o=acme")
	mallory := fx.NewSigner("cn=mallory,ou=x,o=acme")
	for n := range 2 {
		cd.Attest(sha(n), "test:go", ledger.Pass)
	}
	cd.Attest(sha(0), "deploy:prod", ledger.Pass)
	mallory.Attest(sha(1), "deploy:prod", ledger.Pass)
	fx.wantEnvironments("prod 0 DEPLOYED behind 1 violations 1, 1")

	boss.Except(sha(1), "live")
	fx.wantEnvironments("prod 1 DEPLOYED")
}

// How far an environment is behind is counted up to a limit, by target branch and by tree.
func (s suite) TestEnvironmentsBehind(t *testing.T) {
	fx := s.newFixture(t)
	fx.SetContract(`{"requirements":[{"state":"PROMOTABLE","predicate":"test:*"},
		{"state":"DEPLOYED","predicate":"deploy:*"}]}`)
	ci, cd := fx.NewSigner("cn=ci,ou=x,o=acme"), fx.NewSigner("cn=cd,ou=x,o=acme")
	ci.Attest(sha(0), "test:go", ledger.Pass)
	cd.Attest(sha(0), "deploy:prod", ledger.Pass)
	ci.Attest(sha(1), "scan:x", ledger.Pass) // not PROMOTABLE
	for n, target := range []string{"main", "release", "main"} {
		_, _, err := fx.Register(t.Context(), "acme", "api", sha(2+n),
			ledger.Registration{Branch: fmt.Sprint("feature/", n), Target: target})
		must.OK(t, err)
		ci.Attest(sha(2+n), "test:go", ledger.Pass)
	}
	fx.wantEnvironments("prod 0 DEPLOYED behind 2")
	cd.Attest(sha(4), "deploy:eu", ledger.Pass)
	fx.wantEnvironments("eu 4 DEPLOYED", "prod 0 DEPLOYED behind 2")
	ci.Attest(sha(2), "test:go", ledger.Fail)
	fx.wantEnvironments("eu 4 DEPLOYED", "prod 0 DEPLOYED behind 1")

	for n := range ledger.MaxBehind - 1 {
		ci.Attest(sha(10+n), "test:go", ledger.Pass)
	}
	fx.wantEnvironments("eu 4 DEPLOYED behind 99", "prod 0 DEPLOYED behind 100")
	ci.Attest(sha(200), "test:go", ledger.Pass)
	fx.wantEnvironments("eu 4 DEPLOYED behind 100", "prod 0 DEPLOYED behind 100+")
	ci.Attest(sha(201), "test:go", ledger.Pass)
	fx.wantEnvironments("eu 4 DEPLOYED behind 100+", "prod 0 DEPLOYED behind 100+")
}

// Pages do not separate the environments of a repo, if that is possible, and have all
// environments of all repos. Of a repo with many, only the newest are listed.
func (s suite) TestPagesOfEnvironments(t *testing.T) {
	repos := testenv.Pick(60, 60, 300)
	fx := s.newFixture(t)
	cd := fx.NewSigner("cn=cd,ou=x,o=acme")
	for n := range repos {
		_, err := fx.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: fmt.Sprintf("r%04d", n)}, "host")
		must.OK(t, err)
		for _, environment := range []string{"staging", "prod"}[n%2:] {
			fx.attestIn(cd, fmt.Sprintf("r%04d", n), sha(n), "deploy:"+environment)
		}
	}

	for _, limit := range []int{1, 2, 7, 100, 500} {
		q := store.Query{Limit: limit}
		var got []string
		for {
			page, err := fx.Environments(t.Context(), "acme", store.EnvironmentFilter{Query: q})
			must.OK(t, err)
			if len(page.Data) > limit || len(page.Data) == 0 {
				t.Fatalf("a page of %d environments, want at most %d", len(page.Data), limit)
			}
			for _, e := range page.Data {
				got = append(got, e.Repo+" "+e.Name)
			}
			last := page.Data[len(page.Data)-1]
			if limit > 1 && last.Name == "prod" && last.Repo[4]%2 == 0 && page.NextCursor != "" {
				t.Errorf("with pages of %d, a page ends amid %s", limit, last.Repo)
			}
			if q.Cursor = page.NextCursor; q.Cursor == "" {
				break
			}
		}
		distinct := slices.Compact(slices.Sorted(slices.Values(got)))
		if len(got) != repos*3/2 || !slices.IsSorted(byRepo(got)) || len(distinct) != len(got) {
			t.Errorf("with pages of %d, got %d environments, want %d sorted by repo", limit, len(got), repos*3/2)
		}
		prod := fx.environments(store.EnvironmentFilter{Query: store.Query{Limit: limit}, Name: "prod"})
		if len(prod) != repos {
			t.Errorf("with pages of %d, prod of %d repos, want %d", limit, len(prod), repos)
		}
	}
	for _, test := range []struct {
		filter store.EnvironmentFilter
		want   int
	}{
		{store.EnvironmentFilter{Repo: "r0002"}, 2}, {store.EnvironmentFilter{Repo: "r0003"}, 1},
		{store.EnvironmentFilter{Repo: "r0003", Name: "prod"}, 1},
		{store.EnvironmentFilter{Repo: "r0003", Name: "staging"}, 0},
		{store.EnvironmentFilter{Name: "none"}, 0}, {store.EnvironmentFilter{Repo: "api"}, 0},
	} {
		test.filter.Limit = 1
		if got := fx.environments(test.filter); len(got) != test.want {
			t.Errorf("%+v: %d environments, want %d", test.filter, len(got), test.want)
		}
	}
	for _, f := range []store.EnvironmentFilter{{Repo: "none"}, {Query: store.Query{Cursor: "x"}}} {
		f.Limit = 1
		if _, err := fx.Environments(t.Context(), "acme", f); err == nil {
			t.Errorf("%+v: no error", f)
		}
	}

	// More environments than are listed.
	for n := range ledger.MaxEnvironments + 10 {
		fx.attestIn(cd, "r0001", sha(1), fmt.Sprintf("deploy:preview/%d", n))
	}
	for _, limit := range []int{1, 7, 49, 50, 51, 500} {
		q := store.Query{Limit: limit}
		all := fx.environments(store.EnvironmentFilter{Query: q})
		of := slices.DeleteFunc(all, func(e ledger.Environment) bool { return e.Repo != "r0001" })
		if len(of) != ledger.MaxEnvironments || of[0].Name != "preview/59" || of[49].Name != "preview/10" {
			t.Errorf("with pages of %d, %d environments of a repo, want the newest %d", limit, len(of), ledger.MaxEnvironments)
		}
		if of = fx.environments(store.EnvironmentFilter{Query: q, Repo: "r0001"}); len(of) != ledger.MaxEnvironments+11 {
			t.Errorf("with pages of %d, %d environments of the repo, want all %d", limit, len(of), ledger.MaxEnvironments+11)
		}
	}
}

func byRepo(list []string) (repos []string) {
	for _, line := range list {
		repo, _, _ := strings.Cut(line, " ")
		repos = append(repos, repo)
	}
	return repos
}

// attestIn records a pass in a repo.
func (fx *fixture) attestIn(s *storetest.Signer, repo, sha, predicate string) {
	fx.T.Helper()
	payload, err := attestation.NewStatement("git+https://git.example/acme/"+repo, sha, attestation.ResultPredicate{
		Predicate: predicate, Result: ledger.Result{Status: ledger.Pass}})
	must.OK(fx.T, err)
	a, version := s.Verify(payload)
	_, _, err = fx.Record(fx.T.Context(), "acme", repo, a, version)
	must.OK(fx.T, err)
}

// Nobody has read the commit or settled it since its evidence has expired.
func (s suite) TestEnvironmentsShowThePresentState(t *testing.T) {
	fx := s.newFixture(t)
	fx.SetContract(`{"requirements":[{"state":"ATTESTED","predicate":"test:*","max_age":"1h"},
		{"state":"DEPLOYED","predicate":"deploy:prod"}]}`)
	ci := fx.NewSigner("cn=ci,ou=x,o=acme")
	ci.Attest(sha(1), "test:go", ledger.Pass)
	ci.Attest(sha(1), "deploy:staging", ledger.Pass)
	fx.wantEnvironments("staging 1 PROMOTABLE not required")

	fx.Clock.Advance(time.Hour)
	fx.wantEnvironments("staging 1 VALIDATING not required")
}
