package ci

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
)

// maxEvent limits the size of the event file, in bytes. GitHub sends at most 25 MB.
const maxEvent = 25 << 20

// A gitHubEvent is the part of a webhook's payload that is in GITHUB_EVENT_PATH and says
// what the job is about.
type gitHubEvent struct {
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
			Base   gitHubSide `json:"base"`
		} `json:"pull_requests"`
	} `json:"workflow_run"`
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

// readGitHub reads the variables of GitHub Actions.
func readGitHub(r *reader) {
	r.readActions()
	run := r.get("GITHUB_RUN_ID")
	if attempt := r.get("GITHUB_RUN_ATTEMPT"); attempt != "" && attempt != "1" {
		run += "/attempts/" + attempt
	}
	r.setRun(r.repoOfActions() + "/actions/runs/" + run)
}

// readGitea reads the variables of Gitea, which are those of GitHub. Releases before 1.26
// have the page of a run under its number.
func readGitea(r *reader) {
	r.readActions()
	r.setRun(r.repoOfActions() + "/actions/runs/" + r.get("GITHUB_RUN_ID"))
}

// readForgejo reads the variables of Forgejo, which are those of GitHub. The page of a run
// is under its number in the repository.
func readForgejo(r *reader) {
	r.readActions()
	r.setRun(r.repoOfActions() + "/actions/runs/" + r.get("GITHUB_RUN_NUMBER"))
}

func (r *reader) repoOfActions() string {
	return r.get("GITHUB_SERVER_URL") + "/" + r.get("GITHUB_REPOSITORY")
}

// readActions reads what the job is about, from the event or else the variables.
func (r *reader) readActions() {
	r.setRepo(r.repoOfActions())
	event, err := readEvent(r.get("GITHUB_EVENT_PATH"))
	if err != nil {
		r.problem(err.Error(), "let the job read the file GITHUB_EVENT_PATH")
	}
	switch {
	case event.PullRequest.Number > 0:
		r.readPullRequest(event)
	case event.MergeGroup.HeadSHA != "":
		r.readMergeGroup(event)
	case event.WorkflowRun.HeadSHA != "" && r.get("GITHUB_EVENT_NAME") == "workflow_run":
		r.readWorkflowRun(event)
	default:
		r.readRef()
	}
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

// readPullRequest takes the head of the pull request from the event: GITHUB_SHA is a merge
// of it with the target, or the target itself for pull_request_target.
func (r *reader) readPullRequest(event gitHubEvent) {
	const name = "pull_request of the event"
	head, base := event.PullRequest.Head, event.PullRequest.Base
	r.setPullRequest(strconv.FormatInt(event.PullRequest.Number, 10))
	r.setCommit(name, head.SHA)
	r.job.NeedsCommit = r.job.Commit == ""
	r.job.Branch = r.branch(name, head.Ref, "--branch")
	r.job.Target = r.branch(name, base.Ref, "--target")
	r.job.Base = object(base.SHA)
	if head.Repo.FullName != base.Repo.FullName {
		r.setFork(head.Repo.FullName)
	}
}

// readMergeGroup takes the commit that the mainline will get. Its branch exists only in the
// queue, so the commit has none.
func (r *reader) readMergeGroup(event gitHubEvent) {
	const name = "merge_group of the event"
	r.job.Event = MergeQueue
	r.setCommit(name, event.MergeGroup.HeadSHA)
	r.job.Target = r.branch(name, event.MergeGroup.BaseRef, "--target")
	r.job.Base = object(event.MergeGroup.BaseSHA)
}

// readWorkflowRun takes the commit of the run that started this one. GITHUB_SHA is the tip
// of the default branch.
func (r *reader) readWorkflowRun(event gitHubEvent) {
	const name = "workflow_run of the event"
	run := event.WorkflowRun
	r.setCommit(name, run.HeadSHA)
	r.job.NeedsCommit = r.job.Commit == ""
	r.job.Branch = r.branch(name, run.HeadBranch, "--branch")
	if len(run.PullRequests) > 0 && run.Event == "pull_request" {
		r.setPullRequest(strconv.FormatInt(run.PullRequests[0].Number, 10))
		r.job.Target = r.branch(name, run.PullRequests[0].Base.Ref, "--target")
		r.job.Base = object(run.PullRequests[0].Base.SHA)
	}
	if run.HeadRepository.FullName != run.Repository.FullName {
		r.setFork(run.HeadRepository.FullName)
	}
}

// readRef reads the variables of jobs without such an event.
func (r *reader) readRef() {
	ref := r.get("GITHUB_REF")
	number, isPull := strings.CutPrefix(ref, "refs/pull/")
	switch {
	case isPull:
		number, kind, _ := strings.Cut(number, "/")
		r.setPullRequest(number)
		r.setBranch("GITHUB_HEAD_REF")
		r.setTarget("GITHUB_BASE_REF")
		if r.job.NeedsCommit = kind != "head"; r.job.NeedsCommit {
			return
		}
	case strings.HasPrefix(ref, "refs/tags/"):
		r.setTag("GITHUB_REF")
	case strings.HasPrefix(ref, "refs/heads/"):
		r.setBranch("GITHUB_REF")
	}
	r.commit("GITHUB_SHA")
}
