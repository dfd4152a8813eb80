// Package forge forms links to the pages of forges: where people see a repo, its commits,
// branches, files and pull requests in a browser. A new forge is added in kind.go and links.go.
package forge

import (
	"errors"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// MaxURL is the maximum length of a web URL, in bytes.
const MaxURL = 500

// A Site is the forge of one repo. The methods that form links return an empty string
// where the forge has no such page or its kind is not known; those of the zero Site
// always do.
type Site struct {
	kind Kind
	base string
}

// New returns the site of a repo at a web URL, which need not be in canonical form. An
// empty kind is detected. An invalid URL or kind gives the zero Site.
func New(webURL string, kind Kind) Site {
	base, err := CheckURL(webURL)
	if err != nil {
		return Site{}
	}
	if kind == "" {
		kind = Detect(base)
	}
	if _, err := ParseKind(string(kind)); err != nil {
		return Site{}
	}
	return Site{kind, base}
}

// Kind returns the kind of the forge.
func (s Site) Kind() Kind { return s.kind }

// Repo returns the address of the repo's page.
func (s Site) Repo() string { return s.base }

// host matches the hosts that a web URL may have, with a port.
var host = regexp.MustCompile(`^([a-z0-9_-]+(\.[a-z0-9_-]+)*\.?|\[[0-9a-f:.]+\])(:[0-9]{1,5})?$`)

// CheckURL returns the canonical form of the web URL of a repo: scheme and host in lower
// case, and no slash or ".git" at the end. The error says what is wrong and never
// contains the URL, which may have a password.
func CheckURL(webURL string) (string, error) {
	if len(webURL) > MaxURL {
		return "", errors.New("too long: at most " + strconv.Itoa(MaxURL) + " bytes")
	}
	u, err := parseWeb(webURL)
	switch {
	case err != nil:
		return "", err
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", errors.New("remove the part from ? or #: use the address of the repo's page")
	case strings.Trim(u.Path, "/") == "":
		return "", errors.New("the path is missing (use e.g. https://github.com/acme/api)")
	case !isClean(u.Path):
		return "", errors.New("remove empty parts, . and .. from the path")
	}

	escaped := strings.TrimSuffix(strings.TrimRight(u.EscapedPath(), "/"), ".git")
	return u.Scheme + "://" + u.Host + escaped, nil
}

// Web returns a URL if a page may link to it: http or https, with a host and without
// credentials. Otherwise it returns an empty string. It is for URLs that others give,
// such as that of a CI run.
func Web(rawURL string) string {
	if len(rawURL) > 2048 {
		return ""
	}
	u, err := parseWeb(rawURL)
	if err != nil {
		return ""
	}
	return u.String()
}

// parseWeb parses an http or https URL and puts its host in lower case.
func parseWeb(rawURL string) (*url.URL, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, errors.New("not a URL (use e.g. https://github.com/acme/api)")
	}
	u.Host = strings.ToLower(u.Host)

	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("use http or https, e.g. https://github.com/acme/api")
	case u.User != nil:
		return nil, errors.New("remove the user name and password")
	case !host.MatchString(u.Host):
		return nil, errors.New("the host is missing or invalid (write international names in their xn-- form)")
	}
	return u, nil
}

// isClean reports whether a path, without slashes around it, has no empty part, no . and
// no .., which a browser would resolve.
func isClean(file string) bool {
	trimmed := strings.Trim(file, "/")
	return path.Clean(trimmed) == trimmed && trimmed != "." && trimmed != ".." && !strings.HasPrefix(trimmed, "../")
}

// escape escapes the parts of a path, and keeps its slashes. It returns an empty string
// for a path that a browser would resolve to another one.
func escape(file string) string {
	if file == "" || strings.HasPrefix(file, "/") || strings.HasSuffix(file, "/") || !isClean(file) {
		return ""
	}
	parts := strings.Split(file, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return strings.Join(parts, "/")
}
