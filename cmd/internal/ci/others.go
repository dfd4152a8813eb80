package ci

import (
	"net/url"
	"strings"

	"github.com/ledgerd/ledgerd/ledger/forge"
)

// readBuildkite reads the variables of Buildkite. BUILDKITE_COMMIT is the head of a pull
// request; a build that was started by hand may have HEAD.
func readBuildkite(r *reader) {
	r.setRepo(r.get("BUILDKITE_REPO"))
	run := r.get("BUILDKITE_BUILD_URL")
	if job := r.get("BUILDKITE_JOB_ID"); job != "" {
		run += "#" + url.PathEscape(job)
	}
	r.setRun(run)
	r.commit("BUILDKITE_COMMIT")
	switch {
	case r.get("BUILDKITE_TAG") != "":
		r.setTag(r.get("BUILDKITE_TAG"))
		return
	case r.get("BUILDKITE_MERGE_QUEUE_BASE_BRANCH") != "":
		r.job.Event = MergeQueue
		r.setTarget("BUILDKITE_MERGE_QUEUE_BASE_BRANCH")
		r.job.Base = object(r.get("BUILDKITE_MERGE_QUEUE_BASE_COMMIT"))
		return
	}

	number := r.get("BUILDKITE_PULL_REQUEST")
	if number == "" || number == "false" {
		r.setBranch("BUILDKITE_BRANCH")
		return
	}
	r.setPullRequest(number)
	r.setTarget("BUILDKITE_PULL_REQUEST_BASE_BRANCH")
	_, branch, _ := cutLast(r.get("BUILDKITE_BRANCH"), ":") // OWNER:BRANCH of a fork
	r.job.Branch = r.branch("BUILDKITE_BRANCH", branch, "--branch")
	r.readFork(r.get("BUILDKITE_REPO"), r.get("BUILDKITE_PULL_REQUEST_REPO"))
}

// readCircleCI reads the variables of CircleCI, which knows no target. It names the branch
// of a fork pull/42.
func readCircleCI(r *reader) {
	r.setRepo(r.get("CIRCLE_REPOSITORY_URL"))
	r.setRun(r.get("CIRCLE_BUILD_URL"))
	r.commit("CIRCLE_SHA1")
	if r.get("CIRCLE_TAG") != "" {
		r.setTag(r.get("CIRCLE_TAG"))
		return
	}
	r.setBranch("CIRCLE_BRANCH")
	_, number, _ := cutLast(r.get("CIRCLE_PULL_REQUEST"), "/")
	r.setPullRequest(number)
	if fork := r.get("CIRCLE_PR_NUMBER"); fork != "" { // only set for forks
		r.setPullRequest(fork)
		r.setFork(r.get("CIRCLE_PR_USERNAME") + "/" + r.get("CIRCLE_PR_REPONAME"))
	}
}

// readAzure reads the variables of Azure Pipelines. For a pull request,
// BUILD_SOURCEVERSION is a merge of it with the target, also if somebody runs the merge by
// hand.
func readAzure(r *reader) {
	r.setRepo(r.get("BUILD_REPOSITORY_URI"))
	r.setRun(strings.TrimSuffix(r.get("SYSTEM_COLLECTIONURI"), "/") + "/" + url.PathEscape(r.get("SYSTEM_TEAMPROJECT")) +
		"/_build/results?buildId=" + url.QueryEscape(r.get("BUILD_BUILDID")))
	ref := r.get("BUILD_SOURCEBRANCH")
	number := r.get("SYSTEM_PULLREQUEST_PULLREQUESTNUMBER") // of GitHub
	if number == "" {
		number = r.get("SYSTEM_PULLREQUEST_PULLREQUESTID")
	}

	pull, kind, isPull := pullRef(ref)
	switch {
	case number != "":
		r.setPullRequest(number)
		r.commit("SYSTEM_PULLREQUEST_SOURCECOMMITID")
		r.needCommit(unknownHead)
		r.setBranch("SYSTEM_PULLREQUEST_SOURCEBRANCH")
		r.setTarget("SYSTEM_PULLREQUEST_TARGETBRANCH")
		if strings.EqualFold(r.get("SYSTEM_PULLREQUEST_ISFORK"), "true") {
			source := forge.OfRemote(r.get("SYSTEM_PULLREQUEST_SOURCEREPOSITORYURI"))
			u, _ := url.Parse(source) // OfRemote has parsed it
			r.setFork(strings.Trim(u.Path, "/"))
		}
	case isPull && kind != "head":
		r.setPullRequest(pull)
		r.needCommit(unknownHead)
	case strings.HasPrefix(ref, "refs/tags/"):
		r.setTag(r.get("BUILD_SOURCEBRANCH"))
		r.commit("BUILD_SOURCEVERSION")
	default:
		if strings.HasPrefix(ref, "refs/heads/") {
			r.setBranch("BUILD_SOURCEBRANCH")
		}
		r.commit("BUILD_SOURCEVERSION")
	}
}

// readBitbucket reads the variables of Bitbucket Pipelines. It merges the destination of a
// pull request into the clone, but BITBUCKET_COMMIT is the head.
func readBitbucket(r *reader) {
	r.setRepo(r.get("BITBUCKET_GIT_HTTP_ORIGIN"))
	if r.job.RepoURL != "" {
		r.setRun("https://bitbucket.org/" + r.job.Slug + "/pipelines/results/" +
			url.PathEscape(r.get("BITBUCKET_BUILD_NUMBER")))
	}
	r.commit("BITBUCKET_COMMIT")
	if r.get("BITBUCKET_TAG") != "" {
		r.setTag(r.get("BITBUCKET_TAG"))
		return
	}
	r.setBranch("BITBUCKET_BRANCH")
	if number := r.get("BITBUCKET_PR_ID"); number != "" {
		r.setPullRequest(number)
		r.setTarget("BITBUCKET_PR_DESTINATION_BRANCH")
		r.job.Base = object(r.get("BITBUCKET_PR_DESTINATION_COMMIT"))
	}
}
