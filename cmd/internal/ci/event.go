package ci

import (
	"fmt"
	"io"
	"os"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxEvent limits the size of the event file, in bytes. GitHub sends at most 25 MB.
const maxEvent = 25 << 20

// A gitHubEvent is the part of a webhook's payload that is in GITHUB_EVENT_PATH and says
// what the job is about.
type gitHubEvent struct {
	// SHA is the commit of a status, or of a branch that Gitea reports as created. After is the
	// commit that was pushed, also to a pull request, and Before what its branch had before.
	SHA    string `json:"sha"`
	Before string `json:"before"`
	After  string `json:"after"`
	// Deleted reports whether a push has deleted its branch or tag.
	Deleted bool `json:"deleted"`
	// Workflow is a file name if the workflow was started by hand. In other events it is an object.
	Workflow jsontext.Value `json:"workflow"`
	// ClientPayload is the payload that the sender of a repository_dispatch has chosen.
	ClientPayload jsontext.Value `json:"client_payload"`

	CheckRun   gitHubCheck `json:"check_run"`
	CheckSuite gitHubCheck `json:"check_suite"`
	Build      struct {
		Commit string `json:"commit"`
	} `json:"build"`
	Review struct {
		CommitID string `json:"commit_id"`
	} `json:"review"`
	PullRequest struct {
		Number int64      `json:"number"`
		Head   gitHubSide `json:"head"`
		Base   gitHubSide `json:"base"`
	} `json:"pull_request"`
	MergeGroup struct {
		HeadSHA string `json:"head_sha"`
		BaseSHA string `json:"base_sha"`
		BaseRef string `json:"base_ref"`
	} `json:"merge_group"`
	WorkflowRun struct {
		Event          string     `json:"event"`
		HeadSHA        string     `json:"head_sha"`
		HeadBranch     string     `json:"head_branch"`
		HeadRepository gitHubRepo `json:"head_repository"`
		Repository     gitHubRepo `json:"repository"`
		PullRequests   []struct {
			Number int64      `json:"number"`
			Head   gitHubSide `json:"head"`
			Base   gitHubSide `json:"base"`
		} `json:"pull_requests"`
	} `json:"workflow_run"`
}

type gitHubCheck struct {
	HeadSHA string `json:"head_sha"`
}

// A gitHubSide is the head or the base of a pull request. The repository of a deleted fork
// is null.
type gitHubSide struct {
	Ref  string     `json:"ref"`
	SHA  string     `json:"sha"`
	Repo gitHubRepo `json:"repo"`
}

type gitHubRepo struct {
	FullName string `json:"full_name"`
}

// commit returns the commit in an event, and the member that names it, if GITHUB_SHA is only the tip
// of the default branch.
func (e gitHubEvent) commit(event string) (member, sha string) {
	switch event {
	case "check_run":
		return "github.event.check_run.head_sha", e.CheckRun.HeadSHA
	case "check_suite":
		return "github.event.check_suite.head_sha", e.CheckSuite.HeadSHA
	case "page_build":
		return "github.event.build.commit", e.Build.Commit
	case "status":
		return "github.event.sha", e.SHA
	}
	return "", ""
}

// runsOnRef reports whether GitHub runs the workflows of an event on the branch or the tag that
// the event is about. A schedule is about the default branch.
func runsOnRef(event string) bool {
	switch event {
	case "", "create", "deployment", "deployment_status", "dynamic", "push", "registry_package", "release",
		"schedule", "workflow_dispatch":
		return true
	}
	return false
}

// isRunOnCommit reports whether the run of a workflow_run was about its head_sha. GitHub reports
// the tip of the target for pull_request_target.
func (e gitHubEvent) isRunOnCommit() bool {
	run := e.WorkflowRun
	switch run.Event {
	case "merge_group", "pull_request", "pull_request_review", "pull_request_review_comment":
		return true
	case "pull_request_target":
		return len(run.PullRequests) > 0 && run.PullRequests[0].Head.SHA == run.HeadSHA
	}
	return runsOnRef(run.Event)
}

// isByHand reports whether the event is a workflow_dispatch.
func (e gitHubEvent) isByHand() bool { return e.Workflow.Kind() == '"' }

// hasClientPayload reports whether a repository_dispatch has a payload, which may name another commit.
func (e gitHubEvent) hasClientPayload() bool {
	switch string(e.ClientPayload) {
	case "", "null", "{}":
		return false
	}
	return true
}

func readEvent(name string) (event gitHubEvent, err error) {
	if name == "" {
		return event, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return event, fmt.Errorf("cannot read the event of the job: %w", err)
	}
	defer file.Close()
	if err := json.UnmarshalRead(io.LimitReader(file, maxEvent), &event); err != nil {
		return gitHubEvent{}, fmt.Errorf("the event of the job is not valid: %w", err)
	}
	return event, nil
}
