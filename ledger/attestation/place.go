package attestation

import (
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
	// Commit is the commit about which the statement is recorded, if it is. It decides if the statement
	// names several.
	Commit string
}

// isAt reports whether a URI is of the repo.
func (p Place) isAt(uri string) bool {
	own := repoOf(p.WebURL)
	return own != "" && strings.EqualFold(repoOf(uri), own)
}

// has reports whether a URI is of the repo, or of a page below its own, such as that of a commit.
func (p Place) has(uri string) bool {
	repo, own := repoOf(uri), repoOf(p.WebURL)
	return p.isAt(uri) || own != "" && len(repo) > len(own) && repo[len(own)] == '/' &&
		strings.EqualFold(repo[:len(own)], own)
}

// isOther reports whether a URI is of another git repository than the repo. That of an artifact is not.
func (p Place) isOther(uri string) bool {
	if p.WebURL == "" || uri == "" || p.has(uri) {
		return false
	}
	repo, own := strings.Split(repoOf(uri), "/"), strings.Split(repoOf(p.WebURL), "/")
	return isGit(uri) || repo[0] == own[0] && len(repo) == len(own)
}

// checkResource refuses a verification summary of another repository, such as of a fork that has the
// same commit.
func (p Place) checkResource(uri string) error {
	if !p.isOther(uri) {
		return nil
	}
	return ledger.FieldErrorf(ledger.CodeWrongRepo, "predicate.resourceUri",
		"the summary is of %s, and this repo is at %s (send it to the repo of that address, or correct web_url)",
		text.Clip(uri), p.WebURL)
}

// isGit reports whether a URI says by itself that it is of a git repository.
func isGit(uri string) bool {
	if _, ok := packageOfForge(uri); ok {
		return true
	}
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok { // as ssh takes it
		return strings.HasPrefix(uri, "git@") && forge.OfRemote(uri) != ""
	}
	scheme = strings.ToLower(scheme)
	return strings.HasPrefix(scheme, "git") || scheme == "ssh" ||
		strings.HasSuffix(strings.TrimSuffix(withoutRef(rest), "/"), ".git") || isRepoOfForge(uri)
}

// isRepoOfForge reports whether a URL is the page of a repo of a public forge, by the parts of its path.
func isRepoOfForge(uri string) bool {
	switch _, path, _ := strings.Cut(repoOf(uri), "/"); forge.Detect(strings.ToLower(uri)) {
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
	if repo, ok := packageOfForge(uri); ok {
		return repo
	}
	_, rest, ok := strings.Cut(uri, "://")
	if !ok {
		_, rest, ok = strings.Cut(forge.OfRemote(uri), "://")
	}
	if !ok {
		return ""
	}
	host, path, _ := strings.Cut(withoutQuery(rest), "/")
	host = strings.ToLower(host[strings.LastIndexByte(host, '@')+1:])
	return host + "/" + strings.TrimSuffix(strings.Trim(withoutRef(path), "/"), ".git")
}

// packageOfForge returns the repo of a package URL of a type for repos:
// https://github.com/package-url/purl-spec.
func packageOfForge(uri string) (repo string, ok bool) {
	hosts := map[string]string{
		"github": "github.com", "gitlab": "gitlab.com", "bitbucket": "bitbucket.org",
	}
	kind, path, _ := strings.Cut(strings.TrimLeft(strings.TrimPrefix(uri, "pkg:"), "/"), "/")
	host, ok := hosts[strings.ToLower(kind)]
	if !ok || !strings.HasPrefix(uri, "pkg:") {
		return "", false
	}
	return host + "/" + withoutRef(withoutQuery(path)), true
}

// withoutRef returns a path without a ref, which follows an @.
func withoutRef(path string) string {
	path, _, _ = strings.Cut(path, "@")
	return path
}

// withoutQuery returns a URI without its query and its fragment.
func withoutQuery(uri string) string { return uri[:max(strings.IndexAny(uri+"?", "?#"), 0)] }
