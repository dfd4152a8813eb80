package forge

import (
	"net/url"
	"strings"
)

// OfRemote returns the web URL of a repo in its canonical form, as far as the URL of a git
// remote says it: a URL, or host:path as ssh takes it. It is empty for others, such as
// folders. It has no password, even if the remote has one.
func OfRemote(remote string) string {
	scheme, host, path := "https", "", ""
	if strings.Contains(remote, "://") {
		u, err := url.Parse(remote)
		if err != nil {
			return ""
		}
		switch host, path = u.Host, u.EscapedPath(); u.Scheme {
		case "http", "https":
			scheme = u.Scheme
		case "ssh", "git", "git+ssh", "ssh+git":
			host = strings.TrimSuffix(host, ":"+u.Port()) // not the port of the pages
		default:
			return ""
		}
	} else if before, after, ok := strings.Cut(remote, ":"); ok && !strings.Contains(before, "/") {
		host, path = before[strings.LastIndex(before, "@")+1:], "/"+strings.TrimLeft(after, "/")
		if len(host) == 1 {
			return "" // a drive
		}
	}

	web, err := CheckURL(scheme + "://" + host + path)
	if err != nil {
		return ""
	}
	return web
}
