package ci

// A Provider is a CI system.
type Provider string

// The providers.
const (
	GitHub    Provider = "github"
	GitLab    Provider = "gitlab"
	Gitea     Provider = "gitea"
	Forgejo   Provider = "forgejo"
	Jenkins   Provider = "jenkins"
	Buildkite Provider = "buildkite"
	CircleCI  Provider = "circleci"
	Azure     Provider = "azure"
	Bitbucket Provider = "bitbucket"
)

// Name returns the name for people.
func (p Provider) Name() string {
	names := map[Provider]string{
		GitHub: "GitHub Actions", GitLab: "GitLab CI", Gitea: "Gitea Actions", Forgejo: "Forgejo Actions",
		Jenkins: "Jenkins", Buildkite: "Buildkite", CircleCI: "CircleCI", Azure: "Azure Pipelines",
		Bitbucket: "Bitbucket Pipelines",
	}
	return names[p]
}

// WholeHistory says how to get a clone that is not shallow.
func (p Provider) WholeHistory() string {
	switch p {
	case GitHub, Gitea, Forgejo:
		return "set fetch-depth: 0 for actions/checkout"
	case GitLab:
		return `set the variable GIT_DEPTH: "0"`
	case Jenkins:
		return "turn off 'Shallow clone' (CloneOption with shallow: false)"
	case Buildkite:
		return "remove --depth from BUILDKITE_GIT_CLONE_FLAGS and BUILDKITE_GIT_FETCH_FLAGS"
	case CircleCI:
		return "set method: full for checkout"
	case Azure:
		return "set fetchDepth: 0 for checkout"
	case Bitbucket:
		return "set depth: full for clone"
	}
	return "run git fetch --unshallow"
}
