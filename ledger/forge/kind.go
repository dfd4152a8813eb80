package forge

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// A Kind is the kind of software that shows a repo in a browser. It says how the
// addresses of its pages are formed.
type Kind string

// The kinds of forges.
const (
	GitHub    Kind = "github"
	GitLab    Kind = "gitlab"
	Gitea     Kind = "gitea"
	Forgejo   Kind = "forgejo"
	Bitbucket Kind = "bitbucket" // in the cloud, or Data Center
	Azure     Kind = "azure"
	// Other is a forge of which only the page of the repo is known.
	Other Kind = "other"
)

// Kinds returns all kinds, Other last.
func Kinds() []Kind { return []Kind{GitHub, GitLab, Gitea, Forgejo, Bitbucket, Azure, Other} }

// ParseKind returns the kind with a name.
func ParseKind(name string) (Kind, error) {
	if kind := Kind(name); slices.Contains(Kinds(), kind) {
		return kind, nil
	}
	return "", fmt.Errorf("%q is not a kind of forge (use github, gitlab, gitea, forgejo, bitbucket, azure or other)",
		name)
}

// Title returns the name of the kind in prose, such as GitHub. For Other it is
// "the forge".
func (k Kind) Title() string {
	titles := map[Kind]string{
		GitHub: "GitHub", GitLab: "GitLab", Gitea: "Gitea", Forgejo: "Forgejo", Bitbucket: "Bitbucket",
		Azure: "Azure DevOps",
	}
	if title, ok := titles[k]; ok {
		return title
	}
	return "the forge"
}

// Detect returns the kind of the forge at a web URL, by its host: that of a public
// forge, or one whose first label names the software, such as gitlab.example.com. It is
// Other if the host says nothing.
func Detect(webURL string) Kind {
	u, err := url.Parse(webURL)
	if err != nil {
		return Other
	}
	host := strings.ToLower(u.Hostname())

	hosts := map[string]Kind{
		"github.com": GitHub, "gitlab.com": GitLab, "gitea.com": Gitea, "codeberg.org": Forgejo,
		"bitbucket.org": Bitbucket, "dev.azure.com": Azure,
	}
	if kind, ok := hosts[host]; ok {
		return kind
	}

	switch {
	case strings.HasSuffix(host, ".ghe.com"):
		return GitHub
	case strings.HasSuffix(host, ".visualstudio.com"):
		return Azure
	}
	label, _, _ := strings.Cut(host, ".")
	if kind := Kind(label); kind != Azure && slices.Contains(Kinds(), kind) {
		return kind
	}
	return Other
}
