package ci

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

// environment returns the variables of a recorded job.
func environment(t *testing.T, name string) func(string) string {
	t.Helper()
	text := must.Read(t, filepath.Join("testdata", name+".env"))
	variables := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		variables[key] = value
	}
	return func(name string) string { return variables[name] }
}

// The commits in the recorded jobs.
const (
	head  = "8f1d6a9c4b7e2305d1c8a6f4e9b27035c6d8e1fa"
	merge = "c02be7f1935a84d6e07b5c19f3a2d8e46b9071fd"
	base  = "3a7c5e9102f4b6d8837a1c0e5f92b4d6a8c3e1f7"
)

// The pages in the recorded jobs.
const (
	gitHub    = "https://github.example.com/acme/api"
	gitea     = "https://git.example.com/acme/api"
	gitLab    = "https://gitlab.example.com/acme/backend/api"
	jenkins   = "https://jenkins.example.com/job/"
	buildkite = "https://buildkite.com/acme/api/builds/417#0194e1c2-5a3b-4e6f-8a9b-0c1d2e3f4a5b"
	circle    = "https://circleci.com/gh/acme/api/417"
	azure     = "https://dev.azure.com/acme/Back%20end"
	bitbucket = "http://bitbucket.org/acme/api"
)

// Every recorded job has the head of its branch, never a merge commit of the provider.
func TestDetect(t *testing.T) {
	const (
		run     = gitHub + "/actions/runs/9876543210"
		job     = gitLab + "/-/jobs/55021"
		results = azure + "/_build/results?buildId=417"
		steps   = "https://bitbucket.org/acme/api/pipelines/results/417"
	)
	onGitHub := func(j Job) Job { j.Provider, j.RepoURL, j.Slug, j.RunURL = GitHub, gitHub, "acme/api", run; return j }
	for name, want := range map[string]Job{
		"github_push": onGitHub(Job{Event: Push, Commit: head, Branch: "feature/login", Before: base}),
		"github_pull_request": {Provider: GitHub, Event: PullRequest, Commit: head, Branch: "feature/login", Target: "main",
			Base: base, PullRequest: "42", RunURL: run + "/attempts/2", RepoURL: gitHub, Slug: "acme/api"},
		"github_pull_request_no_event": onGitHub(Job{Event: PullRequest, NoCommit: unknownHead, Branch: "feature/login",
			Target: "main", PullRequest: "42"}),
		"github_fork": onGitHub(Job{Event: PullRequest, Commit: head, Branch: "fork/grace/main", Target: "main", Base: base,
			PullRequest: "42", Fork: true}),
		"github_deleted_fork": onGitHub(Job{Event: PullRequest, Commit: head, Branch: "fork/unknown/main", Target: "main",
			Base: base, PullRequest: "42", Fork: true}),
		"github_pull_request_target": onGitHub(Job{Event: PullRequest, Commit: head, Branch: "fork/grace/main",
			Target: "main", Base: base, PullRequest: "42", Fork: true}),
		"github_tag":          onGitHub(Job{Event: Tag, Commit: head, Tag: "v1.4.0"}),
		"github_merge_group":  onGitHub(Job{Event: MergeQueue, Commit: merge, Target: "main", Base: base}),
		"github_workflow_run": onGitHub(Job{Event: Push, Commit: head, Branch: "fork/grace/main", Fork: true}),
		"github_workflow_run_pull_request": onGitHub(Job{Event: PullRequest, Commit: head, Branch: "feature/login",
			Target: "main", Base: base, PullRequest: "42"}),
		"github_check_run": onGitHub(Job{Event: Push, Commit: head}),
		"github_issue_comment": onGitHub(Job{Event: Push,
			NoCommit: "the event issue_comment names no commit, and GITHUB_SHA is the tip of the default branch"}),
		"github_schedule": onGitHub(Job{Event: Push, Commit: base, Branch: "main"}),

		"gitea_push": {Provider: Gitea, Event: Push, Commit: head, Branch: "feature/login", Before: base,
			RunURL: gitea + "/actions/runs/9876543210", RepoURL: gitea, Slug: "acme/api"},
		"gitea_pull_request": {Provider: Gitea, Event: PullRequest, Commit: head, Branch: "feature/login", Target: "main",
			Base: base, PullRequest: "42", RunURL: gitea + "/actions/runs/9876543210", RepoURL: gitea, Slug: "acme/api"},
		"forgejo_pull_request": {Provider: Forgejo, Event: PullRequest, Commit: head, Branch: "feature/login",
			Target: "main", Base: base, PullRequest: "42", RunURL: gitea + "/actions/runs/417", RepoURL: gitea,
			Slug: "acme/api"},
		"forgejo_pull_request_no_event": {Provider: Forgejo, Event: PullRequest, Commit: head, Branch: "feature/login",
			Target: "main", PullRequest: "42", RunURL: gitea + "/actions/runs/417", RepoURL: gitea, Slug: "acme/api"},
		"forgejo_tag": {Provider: Forgejo, Event: Tag, Commit: head, Tag: "v1.4.0",
			RunURL: gitea + "/actions/runs/417", RepoURL: gitea, Slug: "acme/api"},

		"gitlab_push": {Provider: GitLab, Event: Push, Commit: head, Branch: "feature/login", RunURL: job,
			RepoURL: gitLab, Slug: "acme/backend/api"},
		"gitlab_merge_request": {Provider: GitLab, Event: PullRequest, Commit: head, Branch: "feature/login",
			Target: "main", Base: base, PullRequest: "42", RunURL: job, RepoURL: gitLab, Slug: "acme/backend/api"},
		"gitlab_merged_result": {Provider: GitLab, Event: PullRequest, Commit: head, Branch: "feature/login",
			Target: "main", Base: base, PullRequest: "42", RunURL: job, RepoURL: gitLab, Slug: "acme/backend/api"},
		"gitlab_fork": {Provider: GitLab, Event: PullRequest, Commit: head, Branch: "fork/grace/feature/login",
			Target: "main", Base: base, PullRequest: "42", Fork: true, RunURL: job, RepoURL: gitLab, Slug: "acme/backend/api"},
		"gitlab_tag": {Provider: GitLab, Event: Tag, Commit: head, Tag: "v1.4.0", RunURL: job, RepoURL: gitLab,
			Slug: "acme/backend/api"},
		"gitlab_external_pull_request": {Provider: GitLab, Event: PullRequest, Commit: head, Branch: "feature/login",
			Target: "main", PullRequest: "42", RunURL: job, RepoURL: gitLab, Slug: "acme/backend/api"},

		"jenkins_push": {Provider: Jenkins, Event: Push, Commit: head, Branch: "feature/login",
			RunURL: jenkins + "api/job/feature%252Flogin/7/", RepoURL: gitea, Slug: "acme/api"},
		"jenkins_pull_request": {Provider: Jenkins, Event: PullRequest, CommitRef: "refs/remotes/origin/PR-42",
			Branch: "feature/login", Target: "main", PullRequest: "42",
			RunURL: jenkins + "api/view/change-requests/job/PR-42/7/", RepoURL: gitea, Slug: "acme/api"},
		"jenkins_fork": {Provider: Jenkins, Event: PullRequest, CommitRef: "refs/remotes/origin/PR-42",
			Branch: "fork/grace/main", Target: "main", PullRequest: "42", Fork: true,
			RunURL: jenkins + "api/view/change-requests/job/PR-42/7/", RepoURL: gitea, Slug: "acme/api"},
		"jenkins_tag": {Provider: Jenkins, Event: Tag, Commit: head, Tag: "v1.4.0",
			RunURL: jenkins + "api/view/tags/job/v1.4.0/7/", RepoURL: gitea, Slug: "acme/api"},
		"jenkins_single_branch": {Provider: Jenkins, Event: Push, Commit: head, Branch: "main",
			RunURL: jenkins + "api-main/7/", RepoURL: gitea, Slug: "acme/api"},

		"buildkite_push": {Provider: Buildkite, Event: Push, Commit: head, Branch: "feature/login", RunURL: buildkite,
			RepoURL: gitHub, Slug: "acme/api"},
		"buildkite_pull_request": {Provider: Buildkite, Event: PullRequest, Commit: head, Branch: "feature/login",
			Target: "main", PullRequest: "42", RunURL: buildkite, RepoURL: gitHub, Slug: "acme/api"},
		"buildkite_fork": {Provider: Buildkite, Event: PullRequest, Commit: head, Branch: "fork/grace/main",
			Target: "main", PullRequest: "42", Fork: true, RunURL: buildkite, RepoURL: gitHub, Slug: "acme/api"},
		"buildkite_tag": {Provider: Buildkite, Event: Tag, Commit: head, Tag: "v1.4.0", RunURL: buildkite,
			RepoURL: gitHub, Slug: "acme/api"},
		"buildkite_by_hand": {Provider: Buildkite, Event: Push, Branch: "main", RunURL: buildkite, RepoURL: gitHub,
			Slug: "acme/api"},

		"circleci_push": {Provider: CircleCI, Event: Push, Commit: head, Branch: "main", RunURL: circle, RepoURL: gitHub,
			Slug: "acme/api"},
		"circleci_pull_request": {Provider: CircleCI, Event: PullRequest, Commit: head, Branch: "feature/login",
			PullRequest: "42", RunURL: circle, RepoURL: gitHub, Slug: "acme/api"},
		"circleci_fork": {Provider: CircleCI, Event: PullRequest, Commit: head, Branch: "fork/grace/pull/42",
			PullRequest: "42", Fork: true, RunURL: circle, RepoURL: gitHub, Slug: "acme/api"},
		"circleci_tag": {Provider: CircleCI, Event: Tag, Commit: head, Tag: "v1.4.0", RunURL: circle, RepoURL: gitHub,
			Slug: "acme/api"},

		"azure_push": {Provider: Azure, Event: Push, Commit: head, Branch: "feature/login", RunURL: results,
			RepoURL: azure + "/_git/api"},
		"azure_pull_request": {Provider: Azure, Event: PullRequest, Commit: head, Branch: "feature/login", Target: "main",
			PullRequest: "42", RunURL: results, RepoURL: azure + "/_git/api"},
		"azure_fork": {Provider: Azure, Event: PullRequest, Commit: head, Branch: "fork/grace/feature/login",
			Target: "main", PullRequest: "42", Fork: true, RunURL: results, RepoURL: azure + "/_git/api"},
		"azure_tag": {Provider: Azure, Event: Tag, Commit: head, Tag: "v1.4.0", RunURL: results,
			RepoURL: azure + "/_git/api"},

		"bitbucket_push": {Provider: Bitbucket, Event: Push, Commit: head, Branch: "feature/login", RunURL: steps,
			RepoURL: bitbucket, Slug: "acme/api"},
		"bitbucket_pull_request": {Provider: Bitbucket, Event: PullRequest, Commit: head, Branch: "feature/login",
			Target: "main", PullRequest: "42", RunURL: steps, RepoURL: bitbucket, Slug: "acme/api"},
		"bitbucket_tag": {Provider: Bitbucket, Event: Tag, Commit: head, Tag: "v1.4.0", RunURL: steps,
			RepoURL: bitbucket, Slug: "acme/api"},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := Detect(environment(t, name))
			if !ok {
				t.Fatal("no job was detected")
			}
			if problems := len(got.Problems) > 0; problems != (want.Fork || want.NoCommit != "") {
				t.Errorf("problems: %v", got.Problems)
			}
			got.Problems = nil
			if asJSON(t, got) != asJSON(t, want) || got.NoCommit != want.NoCommit {
				t.Errorf("got  %s\nwant %s", asJSON(t, got), asJSON(t, want))
			}
		})
	}
}

func asJSON(t *testing.T, j Job) string {
	t.Helper()
	text := must.Get(json.Marshal(j))(t)
	return string(text)
}

// Every recorded environment is tested above.
func TestAllFixturesAreUsed(t *testing.T) {
	names, err := filepath.Glob("testdata/*.env")
	if err != nil || len(names) < 40 {
		t.Fatal(len(names), err)
	}
	source := must.Read(t, "job_test.go")
	for _, name := range names {
		if name = strings.TrimSuffix(filepath.Base(name), ".env"); !strings.Contains(string(source), `"`+name+`": `) {
			t.Errorf("no test reads testdata/%s.env", name)
		}
	}
}

// Outside a job of a known provider, nothing is detected: CI alone means nothing.
func TestNoJob(t *testing.T) {
	for name, variables := range map[string]map[string]string{
		"nothing":         {},
		"CI alone":        {"CI": "true"},
		"another CI":      {"CI": "true", "DRONE": "true", "DRONE_COMMIT": head},
		"turned off":      {"GITLAB_CI": "true", "CI_COMMIT_SHA": head, "LEDGERD_CI": "off"},
		"a false flag":    {"GITHUB_ACTIONS": "false"},
		"a build number":  {"BUILD_NUMBER": "7", "GIT_COMMIT": head},
		"a Jenkins home":  {"JENKINS_HOME": "/var/jenkins_home"},
		"an empty marker": {"BUILDKITE": ""},
	} {
		if j, ok := Detect(func(name string) string { return variables[name] }); ok {
			t.Errorf("%s: detected %+v", name, j)
		}
	}
}

// Every command asks for the provider when it starts, so that reads no event, which can have
// megabytes.
func TestDetectProvider(t *testing.T) {
	recorded := environment(t, "github_pull_request")
	p := DetectProvider(func(name string) string {
		if name == "GITHUB_EVENT_PATH" {
			t.Error("the event is read")
		}
		return recorded(name)
	})
	if p != GitHub {
		t.Errorf("provider %q", p)
	}
	if p := DetectProvider(func(string) string { return "off" }); p != "" {
		t.Errorf("turned off, provider %q", p)
	}
}

// Values that the ledger would refuse are dropped and reported, whatever they contain.
func TestHostileValues(t *testing.T) {
	hostile := []string{
		"", "-x", "--output=x", "a..b", "a b", "x\n::error::pwned", "x\x1b[2J", "x\u202egnp", "$(touch x)", "a~1", "HEAD",
		"refs/heads/", "../../etc", strings.Repeat("x", 300), "\xff\xfe", "a\x00b", "@{-1}", "x.lock", "a/./b",
	}
	for _, provider := range []string{"github_push", "github_pull_request", "gitlab_merge_request", "jenkins_fork",
		"buildkite_fork", "circleci_fork", "azure_fork", "bitbucket_pull_request", "github_pull_request_no_event"} {
		recorded := environment(t, provider)

		for _, value := range hostile {
			j, ok := Detect(func(name string) string {
				switch name {
				case "GITHUB_ACTIONS", "GITLAB_CI", "BUILDKITE", "CIRCLECI", "TF_BUILD", "GITHUB_EVENT_PATH":
					return recorded(name)
				}
				if recorded(name) == "" {
					return ""
				}
				return value
			})
			if !ok {
				continue
			}

			r := ledger.Registration{Branch: j.Branch, Target: j.Target, Base: j.Base}
			if err := r.Check(); err != nil {
				t.Errorf("%s with %q: %v", provider, value, err)
			}
			if j.Commit != "" && !ledger.IsCommit(j.Commit) || strings.HasPrefix(j.CommitRef, "-") {
				t.Errorf("%s with %q: the commit is %q, %q", provider, value, j.Commit, j.CommitRef)
			}

			all := []string{j.RunURL, j.RepoURL, j.Slug, j.Tag, j.PullRequest, j.Branch, j.Target, j.CommitRef}
			for _, p := range j.Problems {
				all = append(all, p.Problem, p.Fix)
			}
			for _, text := range all {
				if hidden(text) || len(text) > maxURL {
					t.Errorf("%s with %q: %q", provider, value, text)
				}
			}
		}
	}
}

// The event file may be missing, damaged or large; then the head of a pull request is
// unknown, and never guessed.
func TestEventFileFault(t *testing.T) {
	recorded := environment(t, "github_pull_request")
	folder := t.TempDir()
	for name, text := range map[string]string{
		"empty.json":   "",
		"damaged.json": `{"pull_request": {"number": 42`,
		"list.json":    `[]`,
		"large.json":   `{"pull_request": {"number": 42, "title": "` + strings.Repeat("x", maxEvent) + `"}}`,
		"head.json":    `{"pull_request": {"number": 42, "head": {"sha": "--upload-pack=x", "ref": "x"}}}`,
	} {
		path := filepath.Join(folder, name)
		must.OK(t, os.WriteFile(path, []byte(text), 0o600))
		j, ok := Detect(func(name string) string {
			if name == "GITHUB_EVENT_PATH" {
				return path
			}
			return recorded(name)
		})
		if !ok || j.Commit != "" || j.NoCommit == "" || len(j.Problems) == 0 {
			t.Errorf("%s: %+v", name, j)
		}
	}
}

func TestRepoURL(t *testing.T) {
	for address, want := range map[string]string{
		"git@github.example.com:acme/api.git":               gitHub,
		"ssh://git@github.example.com:22/acme/api.git":      gitHub,
		"ssh://github.example.com/acme/api/":                gitHub,
		"https://ci:secret@github.example.com/acme/api.git": gitHub,
		"https://github.example.com/acme/api":               gitHub,
		"file:///srv/git/api.git":                           "",
		"/srv/git/api.git":                                  "",
		"javascript:alert(1)":                               "https://javascript/alert(1)",
		"https://x y/":                                      "",
		"":                                                  "",
	} {
		var r reader
		if r.setRepo(address); r.job.RepoURL != want {
			t.Errorf("the repository at %q: %q, want %q", address, r.job.RepoURL, want)
		}
	}
	if got := pageURL("javascript:alert(1)"); got != "" {
		t.Errorf("a script is a page: %q", got)
	}
}

// A pull request whose repository cannot be compared with that of the job is from a fork.
func TestForkOfBuildkite(t *testing.T) {
	for _, test := range []struct {
		own, source string
		fork        bool
	}{
		{"git@github.com:acme/api.git", "", false},
		{"git@github.com:acme/api.git", "git://github.com/acme/api.git", false},
		{"git@github.com:acme/api.git", "git://github.com/grace/api.git", true},
		{"git@github.com:acme/api.git", "git://github.com/../api.git", true},
		{"/srv/git/api.git", "/srv/git/api.git", false},
		{"/srv/git/api.git", "/srv/git/grace.git", true},
	} {
		j, _ := Detect(func(name string) string {
			return map[string]string{"BUILDKITE": "true", "BUILDKITE_PULL_REQUEST": "42", "BUILDKITE_BRANCH": "main",
				"BUILDKITE_REPO": test.own, "BUILDKITE_PULL_REQUEST_REPO": test.source}[name]
		})
		if j.Fork != test.fork || strings.HasPrefix(j.Branch, "fork/") != test.fork {
			t.Errorf("%q in a job of %q: fork %v, branch %q", test.source, test.own, j.Fork, j.Branch)
		}
	}
}

// Every provider has a name and its own advice.
func TestAdvice(t *testing.T) {
	var all []string
	for _, d := range detectors {
		if d.provider.Name() == "" || strings.HasPrefix(d.provider.WholeHistory(), "run git") {
			t.Errorf("%s has no name or advice", d.provider)
		}
		all = append(all, d.provider.Name())
	}
	slices.Sort(all)
	if len(slices.Compact(all)) != len(detectors) {
		t.Error("two providers have the same name")
	}
}

// The advice names the commit of the job, in the words of its CI system.
func TestCheckout(t *testing.T) {
	const (
		ref  = "set ref: ${{ github.event."
		fork = "run the code of a fork in a job without secrets, and record its result with --status"
	)
	for name, want := range map[string]string{
		"azure_pull_request":               "run git checkout $SYSTEM_PULLREQUEST_SOURCECOMMITID",
		"azure_push":                       "run git checkout $BUILD_SOURCEVERSION",
		"bitbucket_pull_request":           "run git checkout $BITBUCKET_COMMIT",
		"buildkite_by_hand":                "run git checkout $BUILDKITE_COMMIT",
		"buildkite_fork":                   fork,
		"circleci_push":                    "run git checkout $CIRCLE_SHA1",
		"forgejo_pull_request":             ref + "pull_request.head.sha }} for actions/checkout",
		"gitea_push":                       "run git checkout $GITHUB_SHA",
		"github_check_run":                 ref + "check_run.head_sha }} for actions/checkout",
		"github_merge_group":               ref + "merge_group.head_sha }} for actions/checkout",
		"github_pull_request_target":       fork,
		"github_tag":                       "run git checkout $GITHUB_SHA",
		"github_workflow_run":              fork,
		"github_workflow_run_pull_request": ref + "workflow_run.head_sha }} for actions/checkout",
		"gitlab_external_pull_request":     "run git checkout $CI_EXTERNAL_PULL_REQUEST_SOURCE_BRANCH_SHA",
		"gitlab_merge_request":             "run git checkout $CI_COMMIT_SHA",
		"gitlab_merged_result":             "run git checkout $CI_MERGE_REQUEST_SOURCE_BRANCH_SHA",
		"jenkins_pull_request":             "run git checkout origin/$BRANCH_NAME",
		"jenkins_push":                     "run git checkout $GIT_COMMIT",
	} {
		j, _ := Detect(environment(t, name))
		if got := j.Checkout(); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
