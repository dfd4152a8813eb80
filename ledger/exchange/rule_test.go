package exchange_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/oidc/oidctest"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/exchange"
)

// github returns a rule for the repository 1234, and gitlab one for the project 1234.
func github(p *oidctest.Provider) exchange.NewRule {
	return exchange.NewRule{Name: "api", Issuer: p.URL, RepositoryID: "1234", Scope: ledger.Write, Repos: []string{"api"}}
}

func gitlab(p *oidctest.Provider) exchange.NewRule {
	r := github(p)
	r.RepositoryID, r.ProjectID = "", "1234"
	return r
}

// A token is for a rule if it fulfils every condition.
func TestMatch(t *testing.T) {
	p := oidctest.New(t)
	for name, test := range map[string]struct {
		rule   func(*exchange.NewRule)
		change claims
		want   string // part of the reason; empty: it matches
	}{
		"a push":                           {nil, nil, ""},
		"a push by hand":                   {nil, claims{"event_name": "workflow_dispatch"}, ""},
		"a schedule":                       {nil, claims{"event_name": "schedule"}, ""},
		"a release":                        {nil, claims{"event_name": "release"}, ""},
		"a pull request":                   {nil, claims{"event_name": "pull_request"}, "event"},
		"a pull request with a secret":     {nil, claims{"event_name": "pull_request_target"}, "event"},
		"a run after another":              {nil, claims{"event_name": "workflow_run"}, "event"},
		"no event":                         {nil, claims{"event_name": nil}, "event"},
		"the event of GitLab":              {nil, claims{"event_name": nil, "pipeline_source": "push"}, "event"},
		"another number":                   {nil, claims{"repository_id": 91234}, "repository_id"},
		"a longest ref":                    {refs("**"), claims{"ref": "refs/heads/" + strings.Repeat("x", 1024-11)}, ""},
		"a repository ID as a number":      {nil, claims{"repository_id": 1234}, ""},
		"a fork with the name":             {nil, claims{"repository_id": "5678"}, "repository_id"},
		"a fork of the project":            {nil, claims{"repository_id": nil, "project_id": "1234"}, "repository_id"},
		"both kinds of IDs":                {nil, claims{"project_id": "1234"}, "repository_id"},
		"no repository ID":                 {nil, claims{"repository_id": nil}, "repository_id"},
		"a repository ID with a space":     {nil, claims{"repository_id": " 1234"}, "repository_id"},
		"another issuer":                   {nil, claims{"iss": p.URL + "/"}, "issuer"},
		"sub of another repository":        {nil, claims{"sub": "repo:evil/fork:pull_request"}, ""},
		"a pull request that is permitted": {events("pull_request"), claims{"event_name": "pull_request"}, ""},
		"a push that is not permitted":     {events("schedule"), nil, "event"},

		"the ref":                   {refs("main"), nil, ""},
		"the full ref":              {refs("refs/heads/main"), nil, ""},
		"a glob":                    {refs("release/*", "ma*"), nil, ""},
		"another branch":            {refs("main"), claims{"ref": "refs/heads/main2"}, "ref"},
		"a branch with a prefix":    {refs("main"), claims{"ref": "refs/heads/x/main"}, "ref"},
		"a tag named as the branch": {refs("main"), claims{"ref": "refs/tags/main", "ref_type": "tag"}, "ref"},
		"a branch with a full name": {refs("main"), claims{"ref": "refs/heads/refs/heads/main"}, "ref"},
		"a ref that is not full":    {refs("main"), claims{"ref": "main"}, "ref"},
		"the merge of a request":    {refs("main"), claims{"ref": "refs/pull/1/merge"}, "ref"},
		"no ref":                    {refs("**"), claims{"ref": nil}, "ref"},
		"a huge ref":                {refs("**"), claims{"ref": "refs/heads/" + strings.Repeat("x", 1024)}, "ref"},
		"a tag":                     {refs("refs/tags/v*"), claims{"ref": "refs/tags/v1", "ref_type": "tag"}, ""},
		"a branch named as the tag": {refs("refs/tags/v*"), claims{"ref": "refs/heads/v1"}, "ref"},
		"the reusable workflow":     {workflows("acme/workflows/.github/workflows/ci.yml@refs/heads/main"), nil, ""},
		"a glob for its version":    {workflows("acme/workflows/.github/workflows/*@refs/heads/main"), nil, ""},
		"another version":           {workflows("acme/workflows/.github/workflows/ci.yml@refs/tags/v1"), nil, "workflow_ref"},
		"the workflow of a fork": {
			workflows("acme/*/**"), claims{"job_workflow_ref": "evil/x/y.yml@refs/heads/main"}, "job_workflow_ref",
		},
		"no workflow":                 {workflows("**"), claims{"job_workflow_ref": nil}, "job_workflow_ref"},
		"an expression":               {where(`claims.runner_environment == "github-hosted"`), nil, ""},
		"an expression that is false": {where(`claims.ref_type == "tag"`), nil, "false"},
		"an expression that fails":    {where(`claims.environment == "production"`), nil, "cannot be evaluated"},
		"an expression that is text":  {where(`claims.ref`), nil, "not true or false"},
	} {
		rule := github(p)
		if test.rule != nil {
			test.rule(&rule)
		}
		wantMatch(t, name, rule, verified(t, p, p.GitHub(audience, now, test.change)), test.want)
	}
}

// Reasons name the IDs that a token has, and no others.
func TestReasonsNameTheIDsOfTheToken(t *testing.T) {
	p := oidctest.New(t)
	for name, test := range map[string]struct {
		change claims
		want   string
	}{
		"GitHub":  {claims{"repository_id": "999"}, `has repository_id "999"`},
		"GitLab":  {claims{"repository_id": nil, "project_id": "999"}, `has project_id "999"`},
		"both":    {claims{"repository_id": "999", "project_id": "7"}, `has repository_id "999" and project_id "7"`},
		"neither": {claims{"repository_id": nil}, "has no repository_id and no project_id"},
	} {
		c := verified(t, p, p.GitHub(audience, now, test.change))
		want := "the token " + test.want + ": the rule is for repository_id 1234"
		if got := github(p).Match(c).Error(); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
		_, err := exchange.Select(nil, c, ledger.Read, false)
		want = fmt.Sprintf("the org has no rule for this token of the issuer %q: it %s", p.URL, test.want)
		if e, ok := errors.AsType[*ledger.Error](err); !ok || e.Detail != want {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
}

// GitLab has other claims, and its refs are not full.
func TestMatchGitLab(t *testing.T) {
	p := oidctest.New(t)
	for name, test := range map[string]struct {
		rule   func(*exchange.NewRule)
		change claims
		want   string
	}{
		"a push":                    {nil, nil, ""},
		"a schedule":                {nil, claims{"pipeline_source": "schedule"}, ""},
		"a pipeline by hand":        {nil, claims{"pipeline_source": "web"}, "event"},
		"a merge request":           {nil, claims{"pipeline_source": "merge_request_event"}, "event"},
		"the event of GitHub":       {nil, claims{"pipeline_source": nil, "event_name": "push"}, "event"},
		"another project":           {nil, claims{"project_id": "5678"}, "project_id"},
		"a repository":              {nil, claims{"project_id": nil, "repository_id": "1234"}, "project_id"},
		"the branch":                {refs("main"), nil, ""},
		"the full ref":              {refs("refs/heads/main"), nil, ""},
		"a tag named as the branch": {refs("main"), claims{"ref_type": "tag"}, "ref"},
		"no type of the ref":        {refs("main"), claims{"ref_type": nil}, "ref"},
		"another type of ref":       {refs("main"), claims{"ref_type": "commit"}, "ref"},
		"a tag named as a full ref": {refs("main"), claims{"ref": "refs/heads/main", "ref_type": "tag"}, "ref"},
		"a tag":                     {refs("refs/tags/v*"), claims{"ref": "v1", "ref_type": "tag"}, ""},
		"a branch named as the tag": {refs("refs/tags/v*"), claims{"ref": "v1"}, "ref"},
		"no ref":                    {refs("**"), claims{"ref": nil}, "ref"},
		"another ref":               {refs("main"), claims{"ref": "main2"}, "ref"},
		"the branch of a merge request": {
			func(r *exchange.NewRule) { refs("main")(r); events("merge_request_event")(r) },
			claims{"pipeline_source": "merge_request_event"}, "ref",
		},
		"a protected ref": {where(`claims.ref_protected == "true"`), nil, ""},
	} {
		rule := gitlab(p)
		if test.rule != nil {
			test.rule(&rule)
		}
		wantMatch(t, name, rule, verified(t, p, p.GitLab(audience, now, test.change)), test.want)
	}
}

func events(list ...string) func(*exchange.NewRule) {
	return func(r *exchange.NewRule) { r.Events = list }
}

func refs(list ...string) func(*exchange.NewRule) { return func(r *exchange.NewRule) { r.Refs = list } }

func workflows(list ...string) func(*exchange.NewRule) {
	return func(r *exchange.NewRule) { r.Workflows = list }
}

func where(expression string) func(*exchange.NewRule) {
	return func(r *exchange.NewRule) { r.Where = expression }
}

func wantMatch(t *testing.T, name string, rule exchange.NewRule, c exchange.Claims, want string) {
	t.Helper()
	if len(rule.Events) == 0 {
		rule.Events = exchange.DefaultEvents()
	}
	err := rule.Match(c)
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: %v", name, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%s: got %v, want an error with %q", name, err, want)
	}
}

// A rule is checked when it is created.
func TestRules(t *testing.T) {
	p := oidctest.New(t)
	for name, test := range map[string]struct {
		change func(*exchange.NewRule)
		want   string // the field; empty: it is valid
	}{
		"valid":                   {func(*exchange.NewRule) {}, ""},
		"for GitLab":              {func(r *exchange.NewRule) { *r = gitlab(p) }, ""},
		"without a name":          {func(r *exchange.NewRule) { r.Name = "" }, "name"},
		"with spaces":             {func(r *exchange.NewRule) { r.Name = " api" }, "name"},
		"with a long name":        {func(r *exchange.NewRule) { r.Name = strings.Repeat("x", 61) }, "name"},
		"with a hidden character": {func(r *exchange.NewRule) { r.Name = "a\x1bb" }, "name"},
		"without an issuer":       {func(r *exchange.NewRule) { r.Issuer = "" }, "issuer"},
		"without a repository":    {func(r *exchange.NewRule) { r.RepositoryID = "" }, "repository_id"},
		"with a name as its ID":   {func(r *exchange.NewRule) { r.RepositoryID = "acme/api" }, "repository_id"},
		"with a long ID":          {func(r *exchange.NewRule) { r.RepositoryID = strings.Repeat("1", 21) }, "repository_id"},
		"with a project's name":   {func(r *exchange.NewRule) { *r = gitlab(p); r.ProjectID = "api" }, "project_id"},
		"with both":               {func(r *exchange.NewRule) { r.ProjectID = "1" }, "project_id"},
		"with a bad event":        {events("push", "Push"), "events[1]"},
		"with too many events":    {events(slices.Repeat([]string{"push"}, 51)...), "events"},
		"with many events":        {events(slices.Repeat([]string{"push"}, 50)...), ""},
		"with a bad ref":          {refs("main", "[a"), "refs[1]"},
		"with too many refs":      {refs(slices.Repeat([]string{"x"}, 51)...), "refs"},
		"with a bad workflow":     {workflows(""), "workflows[0]"},
		"with too many workflows": {workflows(slices.Repeat([]string{"x"}, 51)...), "workflows"},
		"with workflows of GitLab": {
			func(r *exchange.NewRule) { *r = gitlab(p); workflows("x")(r) }, "workflows",
		},
		"with a ref that others choose": {
			func(r *exchange.NewRule) { *r = gitlab(p); refs("x")(r); events("push", "merge_request_event")(r) }, "refs",
		},
		"with a bad expression":    {where("claims.x =="), "where"},
		"with a text":              {where(`"x"`), "where"},
		"with a large expression":  {where(`claims.x == "` + strings.Repeat("x", 2048) + `"`), "where"},
		"without a scope":          {func(r *exchange.NewRule) { r.Scope = 0 }, "scope"},
		"without repos":            {func(r *exchange.NewRule) { r.Repos = nil }, "repos"},
		"with a bad repo":          {func(r *exchange.NewRule) { r.Repos = []string{"api", "a/b"} }, "repos[1]"},
		"with too many repos":      {func(r *exchange.NewRule) { r.Repos = slices.Repeat([]string{"a"}, 51) }, "repos"},
		"for an hour":              {lifetime(time.Hour), ""},
		"for longer":               {lifetime(time.Hour + 1), "lifetime"},
		"for a minute":             {lifetime(time.Minute), ""},
		"for less":                 {lifetime(time.Minute - 1), "lifetime"},
		"to sign":                  {signer("cn=api,ou=ci-build,o=acme"), ""},
		"to sign as a person":      {signer("cn=Alice,ou=review,o=acme"), "dn"},
		"to sign without a unit":   {signer("cn=api,o=acme"), "dn"},
		"to sign as a bare prefix": {signer("cn=api,ou=ci-"), "dn"},
		"with ci- in capitals":     {signer("cn=api,ou=CI-build"), "dn"},
		"with ci- in the cn":       {signer("cn=ci-api,ou=build"), "dn"},
		"with an invisible DN":     {signer("cn=api,ou=ci-build\u200b"), "dn"},
		"without a cn":             {signer("ou=ci-build"), "dn"},
		"to sign without an o":     {signer("cn=api,ou=ci-build"), "dn"},
	} {
		rule := github(p)
		test.change(&rule)
		_, err := rule.Completed()
		wantField(t, name, err, test.want)
	}
}

func lifetime(d time.Duration) func(*exchange.NewRule) {
	return func(r *exchange.NewRule) { r.Lifetime = ledger.Duration(d) }
}

func signer(dn string) func(*exchange.NewRule) { return func(r *exchange.NewRule) { r.DN = dn } }

// The defaults are stored with a rule, so that a later release does not change it.
func TestCompleted(t *testing.T) {
	rule := github(oidctest.New(t))
	rule.DN = "o=acme, ou=ci-build, cn=api"
	rule, err := rule.Completed()
	must.OK(t, err)
	if got := strings.Join(rule.Events, " "); got != "push workflow_dispatch schedule release" {
		t.Errorf("the events are %s", got)
	}
	if rule.Lifetime != ledger.Duration(15*time.Minute) || rule.DN != "cn=api,ou=ci-build,o=acme" {
		t.Errorf("got the lifetime %s and the signer %s", rule.Lifetime, rule.DN)
	}
}

func TestWarnings(t *testing.T) {
	p := oidctest.New(t)
	for name, test := range map[string]struct {
		change func(*exchange.NewRule)
		want   string // part of the only warning; empty: none
	}{
		"push":                      {events("push"), ""},
		"pull_request_target":       {events("push", "pull_request_target"), "pull_request_target runs with a trusted ref"},
		"workflow_run":              {events("workflow_run"), "workflow_run runs with a trusted ref"},
		"issue_comment":             {events("issue_comment"), "issue_comment runs with a trusted ref"},
		"pull_request":              {events("pull_request"), "nobody has reviewed"},
		"merge_request_event":       {events("merge_request_event"), "nobody has reviewed"},
		"a signer for every branch": {signer("cn=api,ou=ci-build,o=acme"), "every branch may sign as cn=api"},
		"a signer for one branch": {func(r *exchange.NewRule) {
			signer("cn=api,ou=ci-build,o=acme")(r)
			refs("main")(r)
		}, ""},
		"a signer with an expression": {func(r *exchange.NewRule) {
			signer("cn=api,ou=ci-build,o=acme")(r)
			where("true")(r)
		}, ""},
	} {
		rule := github(p)
		test.change(&rule)
		got := rule.Warned()
		if test.want == "" && len(got) > 0 || test.want != "" && (len(got) != 1 || !strings.Contains(got[0], test.want)) {
			t.Errorf("%s: got %q, want one with %q", name, got, test.want)
		}
	}
}

// The oldest rule that matches counts. A caller for whose repository there is no rule learns
// nothing about rules for others.
func TestSelect(t *testing.T) {
	p := oidctest.New(t)
	rule := func(id string, change func(*exchange.NewRule)) exchange.Rule {
		n := github(p)
		if change != nil {
			change(&n)
		}
		n, err := n.Completed()
		must.OK(t, err)
		return exchange.Rule{ID: id, NewRule: n}
	}
	reads := rule("rul_read", func(r *exchange.NewRule) { r.Scope = ledger.Read })
	releases := rule("rul_release", refs("release/*"))
	writes := rule("rul_write", nil)
	signs := rule("rul_sign", signer("cn=api,ou=ci-build,o=acme"))
	other := rule("rul_other", func(r *exchange.NewRule) { r.RepositoryID, r.Name = "5678", "secret" })
	foreign := rule("rul_foreign", func(r *exchange.NewRule) { r.Issuer, r.Name = "https://gitlab.com", "secret" })

	for name, test := range map[string]struct {
		rules   []exchange.Rule
		scope   ledger.Scope
		signing bool
		want    string // the ID of the rule, or part of the error
	}{
		"the oldest":   {[]exchange.Rule{other, releases, reads, writes, signs}, 0, false, "rul_read"},
		"with a scope": {[]exchange.Rule{reads, writes, signs}, ledger.Write, false, "rul_write"},
		"to sign":      {[]exchange.Rule{reads, writes, signs}, 0, true, "rul_sign"},
		"no scope is enough": {
			[]exchange.Rule{reads, writes}, ledger.Admin, false, "rul_write (api): it gives the scope write, not admin",
		},
		"nothing to sign as":    {[]exchange.Rule{writes}, 0, true, "rul_write (api): it has no dn to sign as"},
		"not the ref":           {[]exchange.Rule{releases, other}, 0, false, "rul_release (api): the ref"},
		"of another repository": {[]exchange.Rule{other, foreign}, 0, false, "has no rule for"},
		"none":                  {nil, 0, false, "has no rule for"},
	} {
		c := verified(t, p, p.GitHub(audience, now))
		got, err := exchange.Select(test.rules, c, test.scope, test.signing)
		isID := !strings.Contains(test.want, " ")
		if got.ID != test.want && isID || err == nil && !isID {
			t.Errorf("%s: got %s and %v, want %s", name, got.ID, err, test.want)
		}
		if err != nil {
			wantCode(t, name, err, ledger.CodeNoMatchingRule)
			if !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: got %v, want an error with %q", name, err, test.want)
			}
		}
	}
}
