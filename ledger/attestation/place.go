package attestation

import (
	"net/url"
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
	// Recorded is the commit about which the statement was recorded, when the repo had a web URL that is
	// not known now. It counts if the statement may be about it.
	Recorded string
}

// isAt reports whether a URI is of the repo.
func (p Place) isAt(uri string) bool {
	host, path := split(uri)
	ownHost, own := split(p.WebURL)
	if own == "" || path == "" || !strings.EqualFold(host, ownHost) {
		return false
	}
	// The pages of a forge may be in a folder of the host, of which the addresses of its clones say nothing.
	return strings.EqualFold(path, own) || hasSuffixFold(own, "/"+path)
}

// has reports whether a URI is of the repo, or of a page below its own, such as that of a commit.
func (p Place) has(uri string) bool {
	repo, own := repoOf(uri), repoOf(p.WebURL)
	return p.isAt(uri) || own != "" && len(repo) > len(own) && repo[len(own)] == '/' &&
		strings.EqualFold(repo[:len(own)], own)
}

func hasSuffixFold(s, suffix string) bool {
	return len(s) >= len(suffix) && strings.EqualFold(s[len(s)-len(suffix):], suffix)
}

// isOther reports whether a URI is of another git repository than the repo. That of an artifact is not.
func (p Place) isOther(uri string) bool {
	if p.WebURL == "" || !isComparable(uri) || p.has(uri) {
		return false
	}
	host, path := split(uri)
	ownHost, own := split(p.WebURL)
	return isGit(uri) || host == ownHost && strings.Count(path, "/") == strings.Count(own, "/")
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

// isComparable reports whether a URI may be of a git repository. One with the digest of an image is not.
func isComparable(uri string) bool {
	return repoOf(uri) != "" && !strings.Contains(uri, "@sha256") && (isGit(uri) || isWebPage(uri))
}

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
	if _, ok := packageOfForge(uri); ok {
		return true
	}
	scheme, _, ok := strings.Cut(uri, "://")
	if !ok { // as ssh takes it
		return strings.HasPrefix(uri, "git@") && forge.OfRemote(uri) != ""
	}
	scheme = strings.ToLower(scheme)
	return scheme == "git" || strings.HasPrefix(scheme, "git+") || scheme == "ssh" || isClone(uri) || isRepoOfForge(uri)
}

// isClone reports whether the path of a URL ends in .git.
func isClone(uri string) bool {
	u, err := url.Parse(uri)
	return err == nil && strings.HasSuffix(strings.TrimSuffix(withoutRef(u.Path), "/"), ".git")
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
	path = strings.TrimSuffix(strings.Trim(withoutRef(u.Path), "/"), ".git")

	parts := strings.Split(path, "/")
	switch {
	case len(parts) == 4 && parts[0] == "projects" && parts[2] == "repos": // Bitbucket Data Center
		path = parts[1] + "/" + parts[3]
	case len(parts) == 3 && parts[0] == "scm":
		path = parts[1] + "/" + parts[2]
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
