package ci

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
)

// tip is the tip of the default branch, which GITHUB_SHA is for many events.
const tip = base

// namesNone is a substring of NoCommit if the event names no commit.
const namesNone = " names no commit, and GITHUB_SHA is the tip of the default branch"

// Events without a ref run on the tip of the default branch, but are not about it. The commit of such a
// job is unknown, and NoCommit says why.
func TestEventsThatNameNoCommit(t *testing.T) {
	for event, payload := range map[string]string{
		"branch_protection_rule": `{}`,
		"check_run":              `{"check_run": {}}`,
		"check_suite":            "",
		"delete":                 `{"ref": "x", "ref_type": "branch"}`,
		"discussion":             `{}`,
		"discussion_comment":     `{}`,
		"fork":                   `{}`,
		"gollum":                 `{}`,
		"image_version":          `{}`,
		"issue_comment":          `{"issue": {"number": 42, "pull_request": {"url": "x"}}}`,
		"issues":                 `{"issue": {"number": 7}}`,
		"label":                  `{}`,
		"milestone":              `{}`,
		"page_build":             `{"build": {}}`,
		"public":                 `{}`,
		"push":                   `{"deleted": true}`,
		"release":                `{"release": {}}`, // without a tag
		"repository_dispatch":    `{"client_payload": {"sha": "` + head + `"}}`,
		"something_new":          `{}`,
		"status":                 "{", // is not valid
		"watch":                  `{}`,
		"workflow_run":           "",
		"workflow_call":          `{"issue": {"number": 42}}`,
	} {
		t.Run(event, func(t *testing.T) {
			jobOfEvent{event: event, payload: payload}.check(t, "the event "+event+namesNone, "")
		})
	}
	jobOfEvent{event: "x\n::error::"}.check(t, "the event"+namesNone, "")
	for _, provider := range []string{"GITEA", "FORGEJO"} { // GITHUB_SHA is the tip
		jobOfEvent{event: "registry_package", on: provider}.check(t, namesNone, "")
	}
}

// The commit of a job is the one that its event is about, whatever GITHUB_SHA is.
func TestCommitOfEvent(t *testing.T) {
	const (
		hand      = `{"client_payload": {}}`
		isOfHead  = `{"head_sha": "` + head + `", "head_branch": "main"}`
		ofRequest = `"pull_request": {"number": 42, "head": {"ref": "x", "sha": "` + head + `"}}`
	)
	for name, test := range map[string]struct {
		jobOfEvent
		want   string // the commit; if it is unknown, a substring of NoCommit
		branch string
	}{
		"a check run":   {jobOfEvent{event: "check_run", payload: `{"check_run": ` + isOfHead + `}`}, head, ""},
		"a check suite": {jobOfEvent{event: "check_suite", payload: `{"check_suite": ` + isOfHead + `}`}, head, ""},
		"a status":      {jobOfEvent{event: "status", payload: `{"sha": "` + head + `"}`}, head, ""},
		"a page build":  {jobOfEvent{event: "page_build", payload: `{"build": {"commit": "` + head + `"}}`}, head, ""},
		"a status of no commit": {jobOfEvent{event: "status", payload: `{"sha": "x"}`},
			"the commit of the event is unknown", ""},

		"a schedule":               {jobOfEvent{event: "schedule", payload: `{"schedule": "0 4 * * *"}`}, tip, "main"},
		"a start by hand":          {jobOfEvent{event: "workflow_dispatch", payload: `{"inputs": {}}`}, tip, "main"},
		"an empty dispatch":        {jobOfEvent{event: "repository_dispatch", payload: hand}, tip, "main"},
		"a created branch":         {jobOfEvent{event: "create", ref: "refs/heads/x"}, head, "x"},
		"a created tag":            {jobOfEvent{event: "create", ref: "refs/tags/v1"}, head, ""},
		"a release":                {jobOfEvent{event: "release", ref: "refs/tags/v1"}, head, ""},
		"a package":                {jobOfEvent{event: "registry_package", ref: "refs/heads/x"}, head, "x"},
		"a deployment of a branch": {jobOfEvent{event: "deployment", ref: "refs/heads/x"}, head, "x"},
		"a deployment of a commit": {jobOfEvent{event: "deployment", ref: "-"}, head, ""},
		"a status of a deployment": {jobOfEvent{event: "deployment_status", ref: "-"}, head, ""},
		"a merge queue whose event is unread": {jobOfEvent{event: "merge_group",
			ref: "refs/heads/gh-readonly-queue/main/pr-42"}, head, ""},

		"a review": {jobOfEvent{event: "pull_request_review",
			payload: `{"review": {"commit_id": "` + head + `"}, ` + ofRequest + `}`}, head, "x"},
		"a review of an earlier head": {jobOfEvent{event: "pull_request_review",
			payload: `{"review": {"commit_id": "` + merge + `"}, ` + ofRequest + `}`}, "the review is about another", "x"},
		"a review of Gitea": {jobOfEvent{event: "pull_request_review", on: "GITEA",
			payload: `{"review": {"type": "approved"}, ` + ofRequest + `}`}, head, "x"},
		"a comment on a line": {jobOfEvent{event: "pull_request_review_comment",
			payload: `{` + ofRequest + `}`}, head, "x"},
		"a comment that Gitea describes": {jobOfEvent{event: "issue_comment", on: "GITEA",
			payload: `{"issue": {"number": 42}, ` + ofRequest + `}`}, head, "x"},
		"a target": {jobOfEvent{event: "pull_request_target", payload: `{` + ofRequest + `}`}, head,
			"x"},
		"a target whose event is unread":              {jobOfEvent{event: "pull_request_target"}, unknownHead, ""},
		"a merged pull request whose event is unread": {jobOfEvent{event: "pull_request"}, unknownHead, ""},

		"a call for a push":   {jobOfEvent{event: workflowCall, payload: `{"after": "` + tip + `"}`}, tip, "main"},
		"a call for a branch": {jobOfEvent{event: workflowCall, payload: `{"sha": "` + tip + `"}`}, tip, "main"},
		"a call by hand":      {jobOfEvent{event: workflowCall, payload: `{"workflow": "ci.yml"}`}, tip, "main"},
		"a call for a tag":    {jobOfEvent{event: workflowCall, ref: "refs/tags/v1"}, head, ""},
	} {
		t.Run(name, func(t *testing.T) { test.check(t, test.want, test.branch) })
	}
}

// The first job of a push knows what its branch had before. A retry, which may be late, or a job about another event
// or another commit than the pushed one, does not.
func TestCommitBeforeAPush(t *testing.T) {
	const none = "0000000000000000000000000000000000000000"
	moved := func(e jobOfEvent, before, after string) map[string]string {
		e.payload = fmt.Sprintf(`{"before": %q, "after": %q%s}`, before, after, e.payload)
		return e.variables(t)
	}
	request := jobOfEvent{event: "pull_request",
		payload: `, "pull_request": {"number": 42, "head": {"ref": "x", "sha": "` + head + `"}}`}
	retried := func(variables map[string]string, attempt string) map[string]string {
		variables["GITHUB_RUN_ATTEMPT"] = attempt
		return variables
	}
	for name, test := range map[string]struct {
		variables map[string]string
		want      string
	}{
		"GitHub: a push":             {moved(jobOfEvent{event: "push"}, merge, tip), merge},
		"Gitea: a push":              {moved(jobOfEvent{event: "push", on: "GITEA"}, merge, tip), merge},
		"Gitea: a call for a push":   {moved(jobOfEvent{event: workflowCall, on: "GITEA"}, merge, tip), merge},
		"Forgejo: a push":            {moved(jobOfEvent{event: "push", on: "FORGEJO"}, merge, tip), merge},
		"GitHub: a retry":            {retried(moved(jobOfEvent{event: "push"}, merge, tip), "2"), ""},
		"GitHub: a first attempt":    {retried(moved(jobOfEvent{event: "push"}, merge, tip), "1"), merge},
		"Gitea: a retry":             {retried(moved(jobOfEvent{event: "push", on: "GITEA"}, merge, tip), "12"), ""},
		"Forgejo: a retry":           {retried(moved(jobOfEvent{event: "push", on: "FORGEJO"}, merge, tip), "2"), ""},
		"GitHub: a new branch":       {moved(jobOfEvent{event: "push"}, none, tip), ""},
		"GitHub: not a commit":       {moved(jobOfEvent{event: "push"}, "-x", tip), ""},
		"GitHub: of another commit":  {moved(jobOfEvent{event: "push"}, merge, head), ""},
		"GitHub: a tag that moves":   {moved(jobOfEvent{event: "push", ref: "refs/tags/v1"}, merge, head), ""},
		"GitHub: a schedule":         {jobOfEvent{event: "schedule", payload: `{}`}.variables(t), ""},
		"GitHub: a pull request":     {moved(request, merge, head), merge},
		"GitHub: another head":       {moved(request, merge, tip), ""},
		"GitHub: a new pull request": {moved(request, "", ""), ""},

		"GitLab: a push, or a retry": {variablesOf("GITLAB_CI", "true", "CI_COMMIT_SHA", head, "CI_COMMIT_BRANCH", "x",
			"CI_COMMIT_BEFORE_SHA", merge), ""},
		"Jenkins: what it has built before": {variablesOf("JENKINS_URL", "https://jenkins.example.com/", "GIT_COMMIT", head,
			"GIT_BRANCH", "origin/x", "GIT_PREVIOUS_COMMIT", merge), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if j := detectJob(t, test.variables); j.Before != test.want {
				t.Errorf("before %q, want %q", j.Before, test.want)
			}
		})
	}
}

// variablesOf returns variables from their names and values.
func variablesOf(list ...string) map[string]string {
	variables := make(map[string]string)
	for i := 0; i < len(list); i += 2 {
		variables[list[i]] = list[i+1]
	}
	return variables
}

// The commit of a workflow_run is its head_sha, unless that is the tip of a branch that the run was not
// about.
func TestCommitOfWorkflowRun(t *testing.T) {
	const withHead = `, "pull_requests": [{"number": 42, "head": {"sha": "` + head + `"}}]`
	for name, test := range map[string]struct{ event, more, want string }{
		"a push":                      {"push", "", head},
		"a pull request":              {"pull_request", "", head},
		"a review":                    {"pull_request_review", "", head},
		"a schedule":                  {"schedule", "", head},
		"a merge queue":               {"merge_group", "", head},
		"a target":                    {"pull_request_target", "", "the event pull_request_target, whose commit"},
		"a target with the same head": {"pull_request_target", withHead, head},
		"a comment":                   {"issue_comment", "", "the event issue_comment"},
		"a check":                     {"check_run", "", "the event check_run"},
		"a dispatch":                  {"repository_dispatch", "", "the event repository_dispatch"},
		"a run":                       {"workflow_run", "", "the event workflow_run"},
		"a bad event":                 {"x::y", "", "started by the event, whose"},
	} {
		for _, event := range []string{"workflow_run", workflowCall} {
			t.Run(name+" "+event, func(t *testing.T) {
				branch := ""
				if test.want == head && test.event != "merge_group" {
					branch = "x"
				}
				run := `{"event": "` + test.event + `", "head_sha": "` + head + `", "head_branch": "x"` + test.more + `}`
				payload := `{"workflow": {"id": 7}, "workflow_run": ` + run + `}`
				jobOfEvent{event: event, payload: payload}.check(t, test.want, branch)
			})
		}
	}
}

// The head_branch of a workflow_run is a branch of the repository, unless the run was started by a
// merge queue or a release.
func TestRefOfWorkflowRun(t *testing.T) {
	for headBranch, test := range map[string]struct {
		event string
		want  Job
	}{
		"feature/login":                        {"push", Job{Event: Push, Branch: "feature/login"}},
		"feature/logout":                       {"pull_request", Job{Event: Push, Branch: "feature/logout"}}, // no number
		"gh-readonly-queue/main/pr-42-" + base: {"merge_group", Job{Event: MergeQueue, Target: "main", Base: base}},
		"release/pr-42-" + base:                {"merge_group", Job{Event: MergeQueue}}, // a queue has no such branch
		"v1.4.0":                               {"release", Job{Event: Tag, Tag: "v1.4.0"}},
	} {
		t.Run(headBranch, func(t *testing.T) {
			run := `{"event": "` + test.event + `", "head_sha": "` + head + `", "head_branch": "` + headBranch + `"}`
			j := jobOfEvent{event: "workflow_run", payload: `{"workflow_run": ` + run + `}`}.detect(t)
			got := Job{Event: j.Event, Branch: j.Branch, Target: j.Target, Base: j.Base, Tag: j.Tag}
			if j.Commit != head || asJSON(t, got) != asJSON(t, test.want) {
				t.Errorf("commit %s, %s, want %s", j.Commit, asJSON(t, got), asJSON(t, test.want))
			}
		})
	}
}

// GitHub pushes the commits of its merge queue to branches that other providers build, too.
func TestBranchOfMergeQueue(t *testing.T) {
	const queue = "gh-readonly-queue/"
	for branch, want := range map[string]Job{
		queue + "main/pr-42-" + base:        {Event: MergeQueue, Target: "main", Base: base},
		queue + "release/1.4/pr-42-" + base: {Event: MergeQueue, Target: "release/1.4", Base: base},
		queue + "main/pr-42":                {Event: MergeQueue, Target: "main"},
		queue + "main":                      {Event: MergeQueue},
		"gh-readonly":                       {Event: Push, Branch: "gh-readonly"},
		"x/" + queue + "main/pr-42-" + base: {Event: Push, Branch: "x/" + queue + "main/pr-42-" + base},
	} {
		for name, variables := range map[string]map[string]string{
			"a push on GitHub": {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": "push", "GITHUB_SHA": head,
				"GITHUB_REF": "refs/heads/" + branch},
			"CircleCI":  {"CIRCLECI": "true", "CIRCLE_SHA1": head, "CIRCLE_BRANCH": branch},
			"Azure":     {"TF_BUILD": "True", "BUILD_SOURCEVERSION": head, "BUILD_SOURCEBRANCH": "refs/heads/" + branch},
			"Jenkins":   {"JENKINS_URL": "https://jenkins.example.com/", "GIT_COMMIT": head, "BRANCH_NAME": branch},
			"Buildkite": {"BUILDKITE": "true", "BUILDKITE_COMMIT": head, "BUILDKITE_BRANCH": branch},
		} {
			j := detectJob(t, variables)
			got := Job{Event: j.Event, Branch: j.Branch, Target: j.Target, Base: j.Base}
			if j.Commit != head || asJSON(t, got) != asJSON(t, want) {
				t.Errorf("%s, %s: commit %s, %s, want %s", name, branch, j.Commit, asJSON(t, got), asJSON(t, want))
			}
		}
	}
}

// A jobOfEvent is a job of GitHub, Gitea or Forgejo.
type jobOfEvent struct {
	event, payload string // if the payload is empty, the event file is missing
	ref            string // defaults to main, where GITHUB_SHA is tip; for other refs it is head
	on             string // prefix of the provider's variable, such as GITEA; empty for GitHub
}

// check checks the commit and the branch of the job.
func (e jobOfEvent) check(t *testing.T, want, branch string) {
	t.Helper()
	checkCommit(t, e.variables(t), want, branch)
}

// detect returns the job.
func (e jobOfEvent) detect(t *testing.T) Job {
	t.Helper()
	return detectJob(t, e.variables(t))
}

// variables returns the environment of the job, and writes the file of its event.
func (e jobOfEvent) variables(t *testing.T) map[string]string {
	t.Helper()
	variables := map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": e.event, "GITHUB_REF": e.ref,
		"GITHUB_SHA": head, "GITHUB_EVENT_PATH": filepath.Join(t.TempDir(), "event.json")}
	if e.ref == "" {
		variables["GITHUB_REF"], variables["GITHUB_SHA"] = "refs/heads/main", tip
	}
	if e.on != "" {
		variables[e.on+"_ACTIONS"] = "true"
	}
	if e.payload != "" {
		must.OK(t, os.WriteFile(variables["GITHUB_EVENT_PATH"], []byte(e.payload), 0o600))
	}
	return variables
}

func detectJob(t *testing.T, variables map[string]string) Job {
	t.Helper()
	j, ok := Detect(func(name string) string { return variables[name] })
	if !ok {
		t.Fatal("no job was detected")
	}
	return j
}

// checkCommit checks the commit of a job, or a substring of NoCommit, and the branch.
func checkCommit(t *testing.T, variables map[string]string, want, branch string) {
	t.Helper()
	j := detectJob(t, variables)
	isUnknown := j.Commit == "" && j.NoCommit != "" && strings.Contains(j.NoCommit, want)
	isKnown := j.Commit == want && j.NoCommit == ""
	if !isUnknown && !isKnown || j.Branch != branch {
		t.Errorf("commit %q on branch %q (%s), want %q on %q", j.Commit, j.Branch, j.NoCommit, want, branch)
	}
	if isUnknown && !strings.Contains(asJSON(t, j), "pass --commit") {
		t.Errorf("problems: %v", j.Problems)
	}
}

// Other providers also run jobs on a merge of a pull request, or on the tip of a branch if the event is
// about no commit.
func TestCommitOfOtherProviders(t *testing.T) {
	gitLab := func(source string) map[string]string {
		return map[string]string{"GITLAB_CI": "true", "CI_PIPELINE_SOURCE": source, "CI_COMMIT_SHA": tip,
			"CI_COMMIT_BRANCH": "main"}
	}
	ofRequest := func(source, kind, sourceSHA string) map[string]string {
		return map[string]string{"GITLAB_CI": "true", "CI_PIPELINE_SOURCE": source, "CI_COMMIT_SHA": merge,
			"CI_MERGE_REQUEST_IID": "42", "CI_MERGE_REQUEST_EVENT_TYPE": kind, "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "x",
			"CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": sourceSHA}
	}
	jenkins := func(more ...string) map[string]string {
		return variablesOf(append([]string{"JENKINS_URL", "https://jenkins.example.com/", "GIT_COMMIT", merge,
			"GIT_BRANCH", "origin/pr/42/merge", "GIT_URL", "https://git.example.com/acme/api.git"}, more...)...)
	}
	for name, test := range map[string]struct {
		variables    map[string]string
		want, branch string
	}{
		"GitLab: a push":                       {gitLab("push"), tip, "main"},
		"GitLab: a schedule":                   {gitLab("schedule"), tip, "main"},
		"GitLab: a person":                     {gitLab("web"), tip, "main"},
		"GitLab: the API":                      {gitLab("api"), tip, "main"},
		"GitLab: a trigger token":              {gitLab("trigger"), tip, "main"},
		"GitLab: another project":              {gitLab("pipeline"), tip, "main"},
		"GitLab: a parent pipeline":            {gitLab("parent_pipeline"), tip, "main"},
		"GitLab: a security policy":            {gitLab("security_orchestration_policy"), tip, "main"},
		"GitLab: a chat":                       {gitLab("chat"), "source chat is about no commit", ""},
		"GitLab: an image":                     {gitLab("container_registry_push"), "is about no commit", ""},
		"GitLab: a scan of a site":             {gitLab("ondemand_dast_scan"), "is about no commit", ""},
		"GitLab: a validation of a site":       {gitLab("ondemand_dast_validation"), "is about no commit", ""},
		"GitLab: an agent":                     {gitLab("duo_workflow"), "is about no commit", ""},
		"GitLab: a merge train":                {ofRequest("merge_request_event", "merge_train", head), head, "x"},
		"GitLab: a merge train without a head": {ofRequest("merge_request_event", "merge_train", ""), unknownHead, "x"},
		"GitLab: a child of a merged result":   {ofRequest("parent_pipeline", "merged_result", head), head, "x"},

		"Jenkins: the pull request builder": {jenkins("ghprbPullId", "42", "ghprbActualCommit", head,
			"ghprbSourceBranch", "x", "ghprbAuthorRepoGitUrl", "git@git.example.com:acme/api.git"), head, "x"},
		"Jenkins: the pull request builder, a fork": {jenkins("ghprbPullId", "42", "ghprbActualCommit", head,
			"ghprbSourceBranch", "main", "ghprbAuthorRepoGitUrl", "https://git.example.com/grace/api"), head,
			"fork/grace/main"},
		"Jenkins: the pull request builder without a head": {jenkins("ghprbPullId", "42"), unknownHead, ""},
		"Jenkins: a merge request": {jenkins("gitlabMergeRequestIid", "42", "gitlabMergeRequestLastCommit", head,
			"gitlabSourceBranch", "x"), head, "x"},
		"Jenkins: a merge request of a fork": {jenkins("gitlabMergeRequestIid", "42", "gitlabMergeRequestLastCommit", head,
			"gitlabSourceBranch", "main", "gitlabSourceRepoHttpUrl", "https://git.example.com/grace/api.git",
			"gitlabTargetRepoHttpUrl", "https://git.example.com/acme/api.git"), head, "fork/grace/main"},
		"Jenkins: a comment on a merge request": {jenkins("gitlabActionType", "NOTE", "gitlabMergeRequestIid", "42",
			"gitlabMergeRequestLastCommit", head), head, ""},
		"Jenkins: a change of Gerrit": {jenkins("GERRIT_CHANGE_NUMBER", "42", "GERRIT_PATCHSET_REVISION", head,
			"GERRIT_BRANCH", "main"), head, ""},

		"Buildkite: a merge queue": {map[string]string{"BUILDKITE": "true", "BUILDKITE_COMMIT": merge,
			"BUILDKITE_BRANCH": "gh-readonly-queue/main/pr-42", "BUILDKITE_MERGE_QUEUE_BASE_BRANCH": "main",
			"BUILDKITE_MERGE_QUEUE_BASE_COMMIT": base}, merge, ""},
		"Azure: a merge that somebody runs": {map[string]string{"TF_BUILD": "True", "BUILD_SOURCEVERSION": merge,
			"BUILD_SOURCEBRANCH": "refs/pull/42/merge"}, unknownHead, ""},
		"Azure: a head that somebody runs": {map[string]string{"TF_BUILD": "True", "BUILD_SOURCEVERSION": head,
			"BUILD_SOURCEBRANCH": "refs/pull/42/head"}, head, ""},
	} {
		t.Run(name, func(t *testing.T) { checkCommit(t, test.variables, test.want, test.branch) })
	}
}
