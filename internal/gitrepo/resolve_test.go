package gitrepo

import (
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/gitrepo/gitrepotest"
)

// Only commits are resolved, by any of their names. A full sha that the clone lacks is returned as it is.
func TestResolve(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) { testResolve(t, format) })
	}
}

func testResolve(t *testing.T, format string) {
	gitrepotest.IgnoreConfig(t)
	dir := t.TempDir()
	git := func(args ...string) string { return gitrepotest.Git(t, dir, "", args...) }
	git("init", "--quiet", "--initial-branch=main", "--object-format="+format)
	gitrepotest.WriteFile(t, dir+"/file", "x\n")
	git("add", "file")
	git("commit", "--quiet", "--message", "one")
	head, tree, blob := git("rev-parse", "HEAD"), git("rev-parse", "HEAD^{tree}"), git("rev-parse", "HEAD:file")
	git("tag", "--annotate", "--message", "x", "v1")
	git("tag", "--annotate", "--message", "x", "twice", "v1")
	git("tag", "--annotate", "--message", "x", "of-tree", tree)
	git("tag", "light-tree", tree)
	missing := strings.Repeat("ab", len(head)/2)
	t.Chdir(dir)

	for name, test := range map[string]struct {
		rev, resolved, found string // the results of Resolve and Find, or substrings of their errors
	}{
		"a branch":                   {"main", head, head},
		"a commit":                   {head, head, head},
		"an abbreviated commit":      {head[:12], head, head},
		"a tag":                      {"v1", head, head},
		"the ID of a tag":            {git("rev-parse", "v1"), head, head},
		"a tag of a tag":             {git("rev-parse", "twice"), head, head},
		"a missing ID":               {missing, missing, missing},
		"a missing prefix":           {missing[:12], "not found", missing[:12]},
		"a missing branch":           {"other", "not found", "not found"},
		"the ID of a tree":           {tree, "is a tree, not a commit", "is a tree, not a commit"},
		"the ID of a blob":           {blob, "is a blob, not a commit", "is a blob, not a commit"},
		"the ID of a tag of a tree":  {git("rev-parse", "of-tree"), "is a tree, not", "is a tree, not"},
		"a tag of a tree":            {"of-tree", "is a tree, not a commit", "is a tree, not a commit"},
		"a lightweight tag of one":   {"light-tree", "is a tree, not a commit", "is a tree, not a commit"},
		"a tree by its commit":       {"HEAD^{tree}", "is a tree, not a commit", "is a tree, not a commit"},
		"a file":                     {"HEAD:file", "is a blob, not a commit", "is a blob, not a commit"},
		"an abbreviated tree":        {tree[:12], "is a tree, not a commit", tree[:12]},
		"an option":                  {"--all", "is not a git revision", "is not a git revision"},
		"a path that does not exist": {"HEAD:none", "not found", "not found"},
	} {
		check := func(what, got string, err error, want string) {
			if isPart := err != nil && strings.Contains(err.Error(), want); got != want && !isPart {
				t.Errorf("%s: %s: %q, %v, want %q", name, what, got, err, want)
			}
		}
		got, err := Resolve(t.Context(), test.rev)
		check("Resolve", got, err, test.resolved)
		got, err = Find(t.Context(), test.rev)
		check("Find", got, err, test.found)
	}
}
