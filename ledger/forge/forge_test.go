package forge_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger/forge"
)

const sha = "0123456789abcdef0123456789abcdef01234567"

// TestLinks lists the addresses of each forge, as its own pages have them.
func TestLinks(t *testing.T) {
	for _, test := range []struct {
		base, commit, branch, file, line, lines, pull, pulls string
		kind                                                 forge.Kind
	}{
		{
			base: "https://github.com/acme/api", kind: forge.GitHub,
			commit: "/commit/" + sha, branch: "/tree/fix/a%23b",
			file: "/blob/" + sha + "/docs/a%20b.md", line: "#L7", lines: "#L7-L9",
			pull: "/pull/12", pulls: "/pulls?q=is%3Apr+head%3Afix%2Fa%23b",
		},
		{
			base: "https://gitlab.com/acme/group/api", kind: forge.GitLab,
			commit: "/-/commit/" + sha, branch: "/-/tree/fix/a%23b",
			file: "/-/blob/" + sha + "/docs/a%20b.md", line: "#L7", lines: "#L7-9",
			pull: "/-/merge_requests/12", pulls: "/-/merge_requests?scope=all&state=all&source_branch=fix%2Fa%23b",
		},
		{
			base: "https://gitea.com/acme/api", kind: forge.Gitea,
			commit: "/commit/" + sha, branch: "/src/branch/fix/a%23b",
			file: "/src/commit/" + sha + "/docs/a%20b.md", line: "#L7", lines: "#L7-L9",
			pull: "/pulls/12", pulls: "/compare/release/1...fix/a%23b",
		},
		{
			base: "https://codeberg.org/acme/api", kind: forge.Forgejo,
			commit: "/commit/" + sha, branch: "/src/branch/fix/a%23b",
			file: "/src/commit/" + sha + "/docs/a%20b.md", line: "#L7", lines: "#L7-L9",
			pull: "/pulls/12", pulls: "/compare/release/1...fix/a%23b",
		},
		{
			base: "https://bitbucket.org/acme/api", kind: forge.Bitbucket,
			commit: "/commits/" + sha, branch: "/branch/fix/a%23b",
			file: "/src/" + sha + "/docs/a%20b.md", line: "#lines-7", lines: "#lines-7:9",
			pull: "/pull-requests/12", pulls: "/branch/fix/a%23b",
		},
		{
			base: "https://bitbucket.acme.example/projects/ACME/repos/api", kind: forge.Bitbucket,
			commit: "/commits/" + sha, branch: "/browse?at=refs%2Fheads%2Ffix%2Fa%23b",
			file: "/browse/docs/a%20b.md?at=" + sha, line: "#7", lines: "#7-9",
			pull:  "/pull-requests/12",
			pulls: "/compare/commits?sourceBranch=refs%2Fheads%2Ffix%2Fa%23b&targetBranch=refs%2Fheads%2Frelease%2F1",
		},
		{
			base: "https://dev.azure.com/acme/shop/_git/api", kind: forge.Azure,
			commit: "/commit/" + sha, branch: "?version=GBfix%2Fa%23b",
			file:  "?path=%2Fdocs%2Fa+b.md&version=GC" + sha,
			line:  "&line=7&lineEnd=8&lineStartColumn=1&lineEndColumn=1",
			lines: "&line=7&lineEnd=10&lineStartColumn=1&lineEndColumn=1",
			pull:  "/pullrequest/12", pulls: "/branchCompare?baseVersion=GBrelease%2F1&targetVersion=GBfix%2Fa%23b",
		},
	} {
		t.Run(test.base, func(t *testing.T) {
			s := forge.New(test.base, "")
			if s.Kind() != test.kind || s.Repo() != test.base {
				t.Fatalf("the site is %s at %s, want %s at %s", s.Kind(), s.Repo(), test.kind, test.base)
			}
			for name, pair := range map[string][2]string{
				"commit": {s.Commit(sha), test.commit},
				"branch": {s.Branch("fix/a#b"), test.branch},
				"file":   {s.File(sha, "docs/a b.md"), test.file},
				"line":   {s.Lines(sha, "docs/a b.md", 7, 0), test.file + test.line},
				"lines":  {s.Lines(sha, "docs/a b.md", 7, 9), test.file + test.lines},
				"pull":   {s.Pull(12), test.pull},
				"pulls":  {s.Pulls("fix/a#b", "release/1"), test.pulls},
			} {
				if pair[0] != test.base+pair[1] {
					t.Errorf("%s: %s, want %s", name, pair[0], test.base+pair[1])
				}
			}
		})
	}
}

// Whatever a branch or a file is called, a link leads to a page of the repo.
func TestLinksStayInTheRepo(t *testing.T) {
	nasty := []string{
		"../../evil", "a/../../../evil", "..", ".", "a//b", "/evil", "a/", "", "a?b=c", "a#b", "a%2e%2e/b", `a\..\b`, "a&b=c",
		"{branch}", "{to}",
		"javascript:alert(1)", "ünïcode/ä", "a b", "a+b", "\x00", "@evil.example", "a:b", "\"><script>",
	}
	for _, base := range []string{
		"https://github.com/acme/api", "https://gitlab.com/acme/api", "https://gitea.com/acme/api",
		"https://bitbucket.org/acme/api", "https://dev.azure.com/acme/shop/_git/api",
	} {
		s := forge.New(base, "")
		for _, name := range nasty {
			for _, link := range []string{s.Branch(name), s.File(sha, name), s.Pulls(name, "main"), s.Commit(name)} {
				if link == "" {
					continue
				}
				u, err := url.Parse(link)
				if err != nil || !strings.HasPrefix(u.ResolveReference(&url.URL{}).String(), base) {
					t.Errorf("%q of %s gives %s: %v", name, base, link, err)
				}
				if strings.ContainsAny(link, "\"<> \\\x00") {
					t.Errorf("%q is not escaped in %s", name, link)
				}
			}
		}
	}
}

// What has no page has no link.
func TestNoLink(t *testing.T) {
	for name, s := range map[string]forge.Site{
		"no URL":       {},
		"bad URL":      forge.New("ftp://github.com/acme/api", forge.GitHub),
		"bad kind":     forge.New("https://github.com/acme/api", "sourcehut"),
		"another kind": forge.New("https://git.acme.example/api", ""),
	} {
		links := s.Commit(sha) + s.Branch("main") + s.File(sha, "a.go") + s.Lines(sha, "a.go", 1, 2) + s.Pull(1) +
			s.Pulls("a", "main")
		if links != "" {
			t.Errorf("%s: links %q", name, links)
		}
	}

	s := forge.New("https://github.com/acme/api", "")
	if links := s.Pull(0) + s.Pulls("main", "main"); links != "" {
		t.Errorf("links %q", links)
	}
	if got := forge.New("https://git.acme.example/api", "").Repo(); got != "https://git.acme.example/api" {
		t.Errorf("the repo is at %q", got)
	}
}

func TestCheckURL(t *testing.T) {
	for given, want := range map[string]string{
		"https://github.com/acme/api":               "https://github.com/acme/api",
		"HTTPS://GitHub.com/Acme/API":               "https://github.com/Acme/API",
		"https://github.com/acme/api/":              "https://github.com/acme/api",
		"https://github.com/acme/api.git":           "https://github.com/acme/api",
		"http://[::1]:3000/acme/api":                "http://[::1]:3000/acme/api",
		"https://git.acme.example:8443/x/y":         "https://git.acme.example:8443/x/y",
		"https://dev.azure.com/acme/a%20b/_git/api": "https://dev.azure.com/acme/a%20b/_git/api",
	} {
		if got, err := forge.CheckURL(given); got != want || err != nil {
			t.Errorf("%s gives %q, %v; want %q", given, got, err, want)
		}
	}

	for given, want := range map[string]string{
		"":                                                        "http or https",
		"github.com/acme/api":                                     "http or https",
		"git@github.com:acme/api.git":                             "not a URL",
		"ssh://git@github.com/acme/api":                           "http or https",
		"javascript:alert(1)":                                     "http or https",
		"https://ada:hunter2@github.com/a/b":                      "user name and password",
		"https://ada:hunter2@github.com:x/a":                      "not a URL",
		"https://ada@github.com/a/b":                              "user name and password",
		"https:///acme/api":                                       "host is missing",
		"https://exämple.com/a":                                   "host is missing or invalid",
		"https://github.com":                                      "path is missing",
		"https://github.com/":                                     "path is missing",
		"https://github.com/acme/../evil":                         "remove empty parts",
		"https://github.com/acme/%2e%2e/evil":                     "remove empty parts",
		"https://github.com/acme//api":                            "remove empty parts",
		"https://github.com/acme/api?tab=x":                       "part from ? or #",
		"https://github.com/acme/api#readme":                      "part from ? or #",
		"https://github.com/acme/a\nb":                            "not a URL",
		"https://github.com/" + strings.Repeat("a", forge.MaxURL): "too long",
	} {
		got, err := forge.CheckURL(given)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %q, %v; want an error with %q", given, got, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error %q contains a password", err)
		}
	}
}

func TestDetect(t *testing.T) {
	for webURL, want := range map[string]forge.Kind{
		"https://github.com/acme/api":                  forge.GitHub,
		"https://acme.ghe.com/acme/api":                forge.GitHub,
		"https://github.acme.example/acme/api":         forge.GitHub,
		"https://gitlab.acme.example/acme/api":         forge.GitLab,
		"https://forgejo.acme.example:3000/acme/api":   forge.Forgejo,
		"https://acme.visualstudio.com/shop/_git/api":  forge.Azure,
		"https://notgithub.com/acme/api":               forge.Other,
		"https://github.com.evil.example.net/acme":     forge.GitHub, // by its first label: only the form of links
		"https://other.example/acme/api":               forge.Other,
		"https://azure.acme.example/acme/api":          forge.Other,
		"https://git.acme.example/gitlab.com/acme/api": forge.Other,
	} {
		if got := forge.Detect(webURL); got != want {
			t.Errorf("%s is %s, want %s", webURL, got, want)
		}
	}
	for _, kind := range forge.Kinds() {
		if got, err := forge.ParseKind(string(kind)); got != kind || err != nil {
			t.Errorf("%s: %s, %v", kind, got, err)
		}
	}
	if _, err := forge.ParseKind("GitHub"); err == nil || !strings.Contains(err.Error(), "use github, gitlab") {
		t.Errorf("GitHub: %v", err)
	}
}

func TestWeb(t *testing.T) {
	for given, want := range map[string]string{
		"https://ci.acme.example/runs/7?job=1#log": "https://ci.acme.example/runs/7?job=1#log",
		"http://ci/7":                   "http://ci/7",
		"javascript:alert(1)":           "",
		"https://ada:secret@ci.example": "",
		"data:text/html,x":              "",
		"//ci.example/1":                "",
		"https://ci.example/" + strings.Repeat("a", 2048): "",
	} {
		if got := forge.Web(given); got != want {
			t.Errorf("%s gives %q, want %q", given, got, want)
		}
	}
}
