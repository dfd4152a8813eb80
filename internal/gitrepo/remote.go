package gitrepo

import (
	"context"
	"net/url"
	"strings"
)

// Root returns the top folder of the work tree, or "" outside of one. git decides: it
// also refuses a work tree that belongs to somebody else.
func (g Repo) Root(ctx context.Context) string {
	root, err := g.line(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return ""
	}
	return root
}

// Knows reports whether a revision names a commit of the repository.
func (g Repo) Knows(ctx context.Context, rev string) bool {
	sha, err := g.commit(ctx, rev)
	return err == nil && sha != ""
}

// Config returns a value of git's configuration, or "" if it is not set.
func (g Repo) Config(ctx context.Context, key string) string {
	text, err := g.line(ctx, "config", "--get", key)
	if err != nil {
		return ""
	}
	return text
}

// RemoteURL returns the URL of the remote origin. It is empty without a remote.
func (g Repo) RemoteURL(ctx context.Context) string { return g.Config(ctx, "remote.origin.url") }

// DefaultBranch returns the branch of origin's HEAD, or else the current branch. On a
// detached HEAD without a remote it is "".
func (g Repo) DefaultBranch(ctx context.Context) string {
	if branch, err := g.line(ctx, "symbolic-ref", "--quiet", remoteBranch+"HEAD"); err == nil && branch != "" {
		return strings.TrimPrefix(branch, remoteBranch)
	}
	branch, err := g.line(ctx, "symbolic-ref", "--quiet", "HEAD")
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(branch, localBranch)
}

// IsTracked reports whether the index has a file or a file below a folder.
func (g Repo) IsTracked(ctx context.Context, path string) (bool, error) {
	list, err := g.Read(ctx, "ls-files", "-z", "--", ":(literal)"+path)
	return list != "", err
}

// ExcludeFile returns the path of the file that lists what this clone ignores.
func (g Repo) ExcludeFile(ctx context.Context) (string, error) {
	return g.gitPath(ctx, "info/exclude")
}

// A Remote is what the URL of a remote says about the repo.
type Remote struct {
	Owner, Name string // the last two elements of the path; Owner may be empty
}

// ParseRemote reads the URL of a remote: a URL, host:path as ssh takes it, or a folder.
// Name can be empty.
func ParseRemote(text string) Remote {
	path := text
	if u, err := url.Parse(text); err == nil && strings.Contains(text, "://") {
		path = u.Path
	} else if before, after, ok := strings.Cut(text, ":"); ok && !strings.Contains(before, "/") {
		path = after
	}

	elements := strings.Split(strings.TrimSuffix(strings.Trim(path, "/"), ".git"), "/")
	r := Remote{Name: elements[len(elements)-1]}
	if len(elements) > 1 {
		r.Owner = elements[len(elements)-2]
	}
	return r
}
