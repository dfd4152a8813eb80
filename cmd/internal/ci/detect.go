package ci

import "strings"

// Off is the value of LEDGERD_CI that turns detection off, for jobs about commits of
// another repository than their own.
const Off = "off"

// Detect returns the job from its environment. It reports false outside a job of a known
// provider, and if the variable LEDGERD_CI is off. The variable CI alone means nothing.
func Detect(getenv func(string) string) (Job, bool) {
	d, ok := detect(getenv)
	if !ok {
		return Job{}, false
	}
	r := reader{get: getenv}
	r.job = Job{Provider: d.provider, Event: Push, Problems: []Problem{}}
	d.read(&r)
	r.complete()
	return r.job, true
}

// DetectProvider returns the provider of the job that Detect returns, or "". It reads no
// files.
func DetectProvider(getenv func(string) string) Provider {
	d, _ := detect(getenv)
	return d.provider
}

func detect(getenv func(string) string) (detector, bool) {
	if strings.EqualFold(getenv("LEDGERD_CI"), Off) {
		return detector{}, false
	}
	for _, d := range detectors {
		if d.isSet(getenv) {
			return d, true
		}
	}
	return detector{}, false
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
	case j.Event == MergeQueue || strings.HasPrefix(j.Branch, queuePrefix):
		r.leaveQueue()
	}
	if j.Fork {
		r.problem("the pull request comes from a fork, whose jobs get no secrets from most providers",
			"record from a job that runs after this one in the repository itself; see docs/ci")
	}
	if j.NoCommit != "" {
		r.problem(j.NoCommit, "pass --commit")
	}
}
