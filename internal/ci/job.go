// Package ci detects the CI job that ledgerd runs in, from the environment variables
// and files that the provider documents. It runs no git and sends no requests.
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
	// report it. If both are empty, the commit is HEAD, unless NeedsCommit is set.
	CommitRef string `json:"commit_ref,omitzero"`
	// NeedsCommit reports whether HEAD may be another commit, but nothing says which.
	NeedsCommit bool `json:"-"`
	// Branch is the branch of the commit. For a fork it has the prefix fork/OWNER/, so that
	// it cannot pass for a branch of the repository.
	Branch string `json:"branch,omitzero"`
	// Target is the branch that a pull request is meant for.
	Target string `json:"target,omitzero"`
	// Base is a commit of the target, as reported by the provider.
	Base string `json:"base,omitzero"`
	Tag  string `json:"tag,omitzero"`
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

// Off is the value of LEDGERD_CI that turns detection off, for jobs about commits of
// another repository than their own.
const Off = "off"

// Detect returns the job from its environment. It reports false outside a job of a known
// provider, and if the variable LEDGERD_CI is off. The variable CI alone means nothing.
func Detect(getenv func(string) string) (Job, bool) {
	if strings.EqualFold(getenv("LEDGERD_CI"), Off) {
		return Job{}, false
	}
	for _, d := range detectors {
		if !d.isSet(getenv) {
			continue
		}
		r := reader{get: getenv}
		r.job = Job{Provider: d.provider, Event: Push, Problems: []Problem{}}
		d.read(&r)
		r.complete()
		return r.job, true
	}
	return Job{}, false
}

// A detector recognizes and reads the environment of a provider.
type detector struct {
	provider Provider
	isSet    func(get func(string) string) bool
	read     func(*reader)
}

// detectors has the providers in the order in which they are tried: Gitea and Forgejo
// also set the variables of GitHub.
var detectors = [...]detector{
	{Forgejo, hasVariable("FORGEJO_ACTIONS"), readForgejo},
	{Gitea, hasVariable("GITEA_ACTIONS"), readGitea},
	{GitHub, hasVariable("GITHUB_ACTIONS"), readGitHub},
	{GitLab, hasVariable("GITLAB_CI"), readGitLab},
	{Buildkite, hasVariable("BUILDKITE"), readBuildkite},
	{CircleCI, hasVariable("CIRCLECI"), readCircleCI},
	{Azure, hasVariable("TF_BUILD"), readAzure},
	{Bitbucket, hasVariable("BITBUCKET_BUILD_NUMBER"), readBitbucket},
	{Jenkins, isJenkins, readJenkins},
}

func hasVariable(name string) func(func(string) string) bool {
	return func(get func(string) string) bool {
		value := get(name)
		return value != "" && !strings.EqualFold(value, "false")
	}
}

// complete adds what follows from the other fields.
func (r *reader) complete() {
	j := &r.job
	switch {
	case j.PullRequest != "" && j.Event == Push:
		j.Event = PullRequest
	case j.Tag != "":
		j.Event = Tag
	}
	if j.Fork {
		r.problem("the pull request comes from a fork, whose jobs get no secrets from most providers",
			"record from a job that runs after this one in the repository itself; see docs/ci")
	}
	if j.NeedsCommit {
		r.problem("the head commit of the pull request is unknown", "pass --commit")
	}
}

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
