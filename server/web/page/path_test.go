package page

import (
	"net/url"
	"testing"
)

// Names in paths and queries are escaped; a path without parameters has no question mark.
func TestPaths(t *testing.T) {
	v := &Visit{Org: "a b", Repo: "api"}
	for got, want := range map[string]string{
		v.RepoPath("x/y", "commits", "?"):           "/orgs/a%20b/repos/x%2Fy/commits/%3F",
		v.RepoPath("web"):                           "/orgs/a%20b/repos/web",
		v.PathOf(RadarPattern):                      "/orgs/a%20b/repos/api/radar",
		WithQuery("/p", nil):                        "/p",
		WithQuery("/p", url.Values{"q": {"a&b=c"}}): "/p?q=a%26b%3Dc",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}

	v.Base = "/tools/ledger"
	if got, want := v.PathOf(RadarPattern, "x")+" "+v.RepoPath("web", "y"),
		"/tools/ledger/orgs/a%20b/repos/api/radar/x /tools/ledger/orgs/a%20b/repos/web/y"; got != want {
		t.Errorf("below a base path: %s, want %s", got, want)
	}
}
