package ci

import (
	"strconv"
	"strings"
)

// readGitHub reads the variables of GitHub Actions.
func readGitHub(r *reader) {
	r.readActions()
	run := r.get("GITHUB_RUN_ID")
	if r.isRetry() {
		run += "/attempts/" + r.get("GITHUB_RUN_ATTEMPT")
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

// isRetry reports whether the run of the job was started again.
func (r *reader) isRetry() bool {
	attempt := r.get("GITHUB_RUN_ATTEMPT")
	return attempt != "" && attempt != "1"
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

	name := r.get("GITHUB_EVENT_NAME")
	member, sha := event.commit(name)
	switch {
	case event.PullRequest.Number > 0:
		r.readPullRequest(event)
	case event.MergeGroup.HeadSHA != "" || name == "merge_group":
		r.readMergeGroup(event)
	case event.WorkflowRun.HeadSHA != "" && (name == "workflow_run" || name == workflowCall):
		r.readWorkflowRun(event)
	case sha != "":
		r.setEventCommit(member, sha)
		r.needCommit("the commit of the event is unknown")
	case strings.HasPrefix(name, "pull_request"):
		r.readPullRef()
	case r.isAboutRef(name, event, err):
		r.readRef()
	default:
		r.needCommit(eventName(name) + " names no commit, and GITHUB_SHA is the tip of the default branch")
	}
	if r.job.Branch != "" && r.job.Commit == event.After {
		r.job.Previous = object(event.Before)
		if !r.isRetry() {
			r.job.Before = r.job.Previous
		}
	}
}

// workflowCall is the event of jobs in a called workflow on Gitea, whatever event started the caller.
const workflowCall = "workflow_call"

// isAboutRef reports whether an event is about GITHUB_SHA: it is about GITHUB_REF, or has no subject
// of its own, such as a schedule. Other events, such as a comment or a deletion, only run on the tip of
// the default branch.
func (r *reader) isAboutRef(name string, event gitHubEvent, err error) bool {
	isTag := strings.HasPrefix(r.get("GITHUB_REF"), "refs/tags/")
	switch name {
	case "push":
		return !event.Deleted
	case "release":
		return isTag
	case "registry_package":
		return r.job.Provider == GitHub // elsewhere it is the tip of the default branch
	case "repository_dispatch":
		return err == nil && !event.hasClientPayload()
	case workflowCall:
		sha := r.get("GITHUB_SHA")
		return isTag || event.After == sha || event.SHA == sha || event.isByHand()
	}
	return runsOnRef(name)
}

// eventName returns the name of an event for people. It does not repeat an invalid one, since
// that may contain anything.
func eventName(name string) string {
	const longest = 40
	isInvalid := func(c rune) bool { return (c < 'a' || c > 'z') && c != '_' }
	if name == "" || len(name) > longest || strings.ContainsFunc(name, isInvalid) {
		return "the event"
	}
	return "the event " + name
}

// readPullRequest takes the head of the pull request from the event: GITHUB_SHA is a merge
// of it with the target, or the target itself for pull_request_target.
func (r *reader) readPullRequest(event gitHubEvent) {
	const name = "pull_request of the event"
	head, base := event.PullRequest.Head, event.PullRequest.Base
	r.setPullRequest(strconv.FormatInt(event.PullRequest.Number, 10))
	if reviewed := event.Review.CommitID; reviewed != "" && reviewed != head.SHA {
		r.needCommit("the review is about another commit than the present head of the pull request")
	} else {
		r.setEventCommit("github.event.pull_request.head.sha", head.SHA)
		r.needCommit(unknownHead)
	}
	r.job.Branch = r.branch(name, head.Ref, "--branch")
	r.job.Target = r.branch(name, base.Ref, "--target")
	r.job.Base = object(base.SHA)
	if head.Repo.FullName != base.Repo.FullName {
		r.setFork(head.Repo.FullName)
	}
}

// readMergeGroup takes the commit that the mainline will get.
func (r *reader) readMergeGroup(event gitHubEvent) {
	const name = "merge_group of the event"
	r.job.Event = MergeQueue
	if event.MergeGroup.HeadSHA == "" {
		r.setBranch("GITHUB_REF")
		r.commit("GITHUB_SHA")
		return
	}
	r.setEventCommit("github.event.merge_group.head_sha", event.MergeGroup.HeadSHA)
	r.job.Target = r.branch(name, event.MergeGroup.BaseRef, "--target")
	r.job.Base = object(event.MergeGroup.BaseSHA)
}

// readWorkflowRun takes the commit of the run that started this one. GITHUB_SHA is the tip
// of the default branch, and so is head_sha if that run has started on this tip.
func (r *reader) readWorkflowRun(event gitHubEvent) {
	const name = "workflow_run of the event"
	run := event.WorkflowRun
	if !event.isRunOnCommit() {
		r.needCommit("the run that has ended was started by " + eventName(run.Event) +
			", whose commit is not in workflow_run")
		return
	}
	r.setEventCommit("github.event.workflow_run.head_sha", run.HeadSHA)
	r.needCommit("the commit of the run that has ended is unknown")

	switch run.Event {
	case "release": // head_branch is its tag
		r.setTag(run.HeadBranch)
		return
	case "merge_group":
		r.job.Event = MergeQueue
	}

	r.job.Branch = r.branch(name, run.HeadBranch, "--branch")
	if len(run.PullRequests) > 0 && strings.HasPrefix(run.Event, "pull_request") {
		r.setPullRequest(strconv.FormatInt(run.PullRequests[0].Number, 10))
		r.job.Target = r.branch(name, run.PullRequests[0].Base.Ref, "--target")
		r.job.Base = object(run.PullRequests[0].Base.SHA)
	}
	if run.HeadRepository.FullName != run.Repository.FullName {
		r.setFork(run.HeadRepository.FullName)
	}
}

// readPullRef reads the variables of a pull request whose event is unknown. A merge and the tip
// of a branch, as for pull_request_target, are not its head.
func (r *reader) readPullRef() {
	r.job.Event = PullRequest
	r.setBranch("GITHUB_HEAD_REF")
	r.setTarget("GITHUB_BASE_REF")
	number, kind, ok := pullRef(r.get("GITHUB_REF"))
	if ok {
		r.setPullRequest(number)
	}
	if ok && kind == "head" {
		r.commit("GITHUB_SHA")
	}
	r.needCommit(unknownHead)
}

// readRef reads the variables of jobs about a branch or a tag.
func (r *reader) readRef() {
	switch ref := r.get("GITHUB_REF"); {
	case strings.HasPrefix(ref, "refs/pull/"):
		r.readPullRef()
		return
	case strings.HasPrefix(ref, "refs/tags/"):
		r.setTag(r.get("GITHUB_REF"))
	case strings.HasPrefix(ref, "refs/heads/"):
		r.setBranch("GITHUB_REF")
	}
	r.commit("GITHUB_SHA")
}
