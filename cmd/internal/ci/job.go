// Package ci detects the CI job that ledgerd runs in, from the environment variables
// and files that the provider documents: detect.go lists the systems. It runs no git and
// sends no requests.
//
// Everybody who can open a pull request chooses some of the values, such as names of
// branches. A value that the ledger would refuse is dropped and reported as a problem.
package ci

import "strings"

// A Job is the CI job that ledgerd runs in. Fields that the provider does not report are
// empty.
type Job struct {
	Provider Provider `json:"provider"`
	Event    Event    `json:"event"`
	// Commit is the commit that the job is about. For a pull request it is the head of the
	// branch, not a merge commit that the provider created.
	Commit string `json:"commit,omitzero"`
	// CommitRef is a ref of the clone that points to the commit, for providers that do not
	// report it. If both are empty, the commit is HEAD, unless NoCommit is set.
	CommitRef string `json:"commit_ref,omitzero"`
	// CommitIn is where a script or a workflow has the commit, such as $CIRCLE_SHA1 or, for a member of
	// an event, ${{ github.event.pull_request.head.sha }}.
	CommitIn string `json:"-"`
	// NoCommit says why the commit is unknown, for example because the event names none. HEAD may
	// then be another commit. It is empty if the commit is known.
	NoCommit string `json:"-"`
	// Branch is the branch of the commit. For a fork it has the prefix fork/OWNER/, so that
	// it cannot pass for a branch of the repository.
	Branch string `json:"branch,omitzero"`
	// Target is the branch that a pull request is meant for.
	Target string `json:"target,omitzero"`
	// Base is a commit of the target, as reported by the provider.
	Base string `json:"base,omitzero"`
	// Before is what the branch had before the push that started the job. It is empty if the job is a retry,
	// or the provider does not report that: the branch may have moved since.
	Before string `json:"before,omitzero"`
	// Previous is the same, also if the job is a retry.
	Previous string `json:"-"`
	Tag      string `json:"tag,omitzero"`
	// PullRequest is the number of the pull or merge request.
	PullRequest string `json:"pull_request,omitzero"`
	// Fork reports whether the pull request comes from another repository.
	Fork bool `json:"fork"`
	// RunURL is the page of this run, and RepoURL that of the repository.
	RunURL  string `json:"run_url,omitzero"`
	RepoURL string `json:"repo_url,omitzero"`
	// Slug is the path of the repository on its host, such as acme/api.
	Slug string `json:"slug,omitzero"`
	// Problems are values that are missing or invalid.
	Problems []Problem `json:"problems"`
}

// A Problem is a value that is missing, and what to do about it.
type Problem struct {
	Problem string `json:"problem"`
	Fix     string `json:"fix"`
}

// An Event is what started a job.
type Event string

// The events. A merge queue tests the commit that the mainline will get.
const (
	Push        Event = "push"
	PullRequest Event = "pull_request"
	Tag         Event = "tag"
	MergeQueue  Event = "merge_queue"
)

// Describe names the job in a few words, such as "GitHub Actions, pull request 42".
func (j Job) Describe() string {
	text := j.Provider.Name()
	switch {
	case j.PullRequest != "":
		text += ", pull request " + j.PullRequest
	case j.Tag != "":
		text += ", tag " + j.Tag
	case j.Event == MergeQueue:
		text += ", merge queue"
	}
	if j.Fork {
		text += " (fork)"
	}
	return text
}

// Checkout says how to check out the commit in a job of this kind. A job about a fork may have
// secrets that the fork's code must not get.
func (j Job) Checkout() string {
	switch {
	case j.Fork:
		return "run the code of a fork in a job without secrets, and record its result with --status"
	case strings.HasPrefix(j.CommitIn, "${{"):
		return "set ref: " + j.CommitIn + " for actions/checkout"
	case j.CommitIn != "":
		return "run git checkout " + j.CommitIn
	}
	return "check out the commit of the job"
}
