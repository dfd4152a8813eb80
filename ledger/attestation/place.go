package attestation

import (
	"net/url"
	pathpkg "path"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/forge"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// A Place is what the ledger knows of the repo that a statement is for. Statements name their repository
// by a URI, and some name several commits. The zero Place knows nothing.
type Place struct {
	// WebURL is where people see the repo in a browser. Of several commits, those of the repository there
	// count, and a summary of another repository is refused.
	WebURL string
	// Recorded is the commit about which the statement was recorded. The web URL that the repo had then is
	// not known; the commit counts if there is a web URL for which it does.
	Recorded string
}

// isAt reports whether a URI is of the repo.
func (p Place) isAt(uri string) bool {
	host, path := split(uri)
	ownHost, own := split(p.WebURL)
	if own == "" || !strings.EqualFold(host, ownHost) {
		return false
	}
	return strings.EqualFold(path, own) || isCloneOfDataCenter(host, path, own)
}

// isCloneOfDataCenter reports whether a path is that of the clone of a repo of Bitbucket Data Center,
// whose page is at the path own: projects/KEY/repos/NAME. The clone is at scm/KEY/NAME, or KEY/NAME by ssh.
func isCloneOfDataCenter(host, path, own string) bool {
	parts := strings.Split(own, "/")
	if len(parts) != 4 || parts[0] != "projects" || parts[2] != "repos" {
		return false
	}
	kind := forge.Detect("https://" + host)
	clone := parts[1] + "/" + parts[3]
	return (kind == forge.Other || kind == forge.Bitbucket) &&
		(strings.EqualFold(path, clone) || strings.EqualFold(path, "scm/"+clone))
}

// has reports whether a URI is of the repo, or of a page below its own, such as that of a commit.
func (p Place) has(uri string) bool {
	repo, own := repoOf(uri), repoOf(p.WebURL)
	return p.isAt(uri) || own != "" && len(repo) > len(own) && repo[len(own)] == '/' &&
		strings.EqualFold(repo[:len(own)], own)
}

// isOther reports whether a URI is of another git repository than the repo. That of an artifact is not.
func (p Place) isOther(uri string) bool {
	if p.WebURL == "" || p.has(uri) {
		return false
	}
	host, path := split(uri)
	ownHost, own := split(p.WebURL)
	switch {
	case hasGitScheme(uri):
		return true
	case p.isImage(uri):
		return false
	}
	return isGit(uri) || host == ownHost && strings.Count(path, "/") == strings.Count(own, "/")
}

// isImage reports whether a URI is of an image, by its tag or, in a registry that is not at the address of
// the repo's forge, its digest.
func (p Place) isImage(uri string) bool {
	u, err := url.Parse(uri)
	if err != nil {
		return false
	}
	file, digest, _ := strings.Cut(u.Path, "@sha256:")
	home, err := url.Parse(p.WebURL)
	return strings.Contains(file, ":") || digest != "" && (err != nil || address(u) != address(home))
}

// address returns the host of a URL, and its port if it is not that of the scheme.
func address(u *url.URL) string {
	host := strings.ToLower(u.Hostname())
	if port := u.Port(); port != "" && port != "80" && port != "443" {
		host += ":" + port
	}
	return host
}

// checkVerified refuses a verification summary of another repository, such as of a fork that has the
// same commit.
func (p Place) checkVerified(uris []string) error {
	for _, uri := range uris {
		if p.isOther(uri) {
			return ledger.FieldErrorf(ledger.CodeWrongRepo, "predicate.resourceUri",
				"the summary is of %s, and this repo is at %s (send it to the repo of that address, or correct web_url)",
				text.Clip(uri), p.WebURL)
		}
	}
	return nil
}

// isComparable reports whether isOther depends on the web URL for a URI.
func isComparable(uri string) bool { return repoOf(uri) != "" || hasGitScheme(uri) }

// isWebPage reports whether a URI may be the web URL of a repo.
func isWebPage(uri string) bool {
	web, err := forge.CheckURL(uri)
	if err != nil {
		return false
	}
	_, path := split(web)
	return !strings.Contains(path, ":")
}

// isGit reports whether a URI says by itself that it is of a git repository.
func isGit(uri string) bool {
	return hasGitScheme(uri) || isClone(uri) || isRepoOfForge(uri)
}

// hasGitScheme reports whether a URI is an address that only git has.
func hasGitScheme(uri string) bool {
	if _, ok := packageOfForge(uri); ok {
		return true
	}
	scheme, _, ok := strings.Cut(uri, "://")
	if !ok { // as ssh takes it
		return strings.HasPrefix(uri, "git@") && forge.OfRemote(uri) != ""
	}
	scheme = strings.ToLower(scheme)
	return scheme == "git" || scheme == "ssh" || strings.HasPrefix(scheme, "git+")
}

// isClone reports whether the path of a URL ends in .git.
func isClone(uri string) bool {
	u, err := url.Parse(uri)
	return err == nil && u.Host != "" && strings.HasSuffix(strings.TrimSuffix(withoutRef(u.Path), "/"), ".git")
}

// isRepoOfForge reports whether a URL is the page of a repo of a public forge, by the parts of its path.
func isRepoOfForge(uri string) bool {
	_, path := split(uri)
	switch forge.Detect(strings.ToLower(uri)) {
	case forge.GitHub, forge.Gitea, forge.Forgejo, forge.Bitbucket:
		return strings.Count(path, "/") == 1
	case forge.GitLab: // has groups in groups
		return strings.Contains(path, "/") && !strings.Contains(path, "/-/") && !strings.HasPrefix(path, "api/")
	}
	return false
}

// repoOf returns the host and the path of a git repo's URI: git+https://host/a/b@ref,
// https://host/a/b.git and git@host:a/b are the same repo, and so is pkg:github/a/b on github.com. It is
// empty for other texts.
func repoOf(uri string) string {
	host, path := split(uri)
	if host == "" {
		return ""
	}
	return host + "/" + path
}

// split returns the host of a git repo's URI, without the port, and its path, without .git; empty for other texts. The
// clones of some forges have another address than their pages, of which it returns the latter.
func split(uri string) (host, path string) {
	if repo, ok := packageOfForge(uri); ok {
		host, path, _ = strings.Cut(repo, "/")
		return host, path
	}
	if !strings.Contains(uri, "://") {
		uri = forge.OfRemote(uri)
	}
	u, err := url.Parse(uri)
	if err != nil || u.Host == "" {
		return "", ""
	}
	host = strings.ToLower(u.Hostname())
	path = strings.Trim(pathpkg.Clean("/"+withoutRef(u.Path)), "/")
	path = strings.TrimSuffix(path, ".git")

	parts := strings.Split(path, "/")
	switch {
	case host == "ssh.dev.azure.com" && len(parts) == 4 && parts[0] == "v3":
		host, path = "dev.azure.com", strings.Join(parts[1:], "/")
	case host == "dev.azure.com" && len(parts) == 4 && parts[2] == "_git":
		path = parts[0] + "/" + parts[1] + "/" + parts[3]
	}
	return host, path
}

// packageOfForge returns the repo of a package URL of a type for repos:
// https://github.com/package-url/purl-spec.
func packageOfForge(uri string) (repo string, ok bool) {
	rest, ok := strings.CutPrefix(uri, "pkg:")
	kind, path, _ := strings.Cut(strings.TrimLeft(rest, "/"), "/")
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		path = path[:i]
	}
	switch kind = strings.ToLower(kind); {
	case !ok:
	case kind == "github", kind == "gitlab":
		return kind + ".com/" + withoutRef(path), true
	case kind == "bitbucket":
		return "bitbucket.org/" + withoutRef(path), true
	}
	return "", false
}

// withoutRef returns a path without a ref, which follows an @.
func withoutRef(path string) string {
	path, _, _ = strings.Cut(path, "@")
	return path
}
