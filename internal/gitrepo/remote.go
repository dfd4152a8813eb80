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

// RemoteURL returns the URL of the remote origin, or "" if there is none.
func (g Repo) RemoteURL(ctx context.Context) string {
	text, err := g.line(ctx, "config", "--get", "remote.origin.url")
	if err != nil {
		return ""
	}
	return text
}

// A Remote is what the URL of a remote says about the repo.
type Remote struct {
	Owner, Name string // the last two elements of the path; Owner may be empty
	WebURL      string // where people see it in a browser, if the URL says so, or ""
}

// ParseRemote reads the URL of a remote: a URL, host:path as ssh takes it, or a folder.
// Name is empty if there is none.
func ParseRemote(text string) Remote {
	host, path := "", text
	if u, err := url.Parse(text); err == nil && strings.Contains(text, "://") {
		host, path = u.Hostname(), u.Path
		if port := u.Port(); port != "" && strings.HasPrefix(u.Scheme, "http") {
			host += ":" + port
		}
	} else if before, after, ok := strings.Cut(text, ":"); ok && !strings.Contains(before, "/") {
		host, path = before[strings.LastIndex(before, "@")+1:], after
	}

	path = strings.TrimSuffix(strings.Trim(path, "/"), ".git")
	elements := strings.Split(path, "/")
	r := Remote{Name: elements[len(elements)-1]}
	if len(elements) > 1 {
		r.Owner = elements[len(elements)-2]
	}
	if host != "" && r.Owner != "" {
		scheme := "https"
		if strings.HasPrefix(text, "http://") {
			scheme = "http"
		}
		r.WebURL = scheme + "://" + host + "/" + path
	}
	return r
}
