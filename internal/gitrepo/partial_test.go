package gitrepo

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/ledgerd/ledgerd/internal/gitrepo/gitrepotest"
)

// cloneGitRepo clones g without a checkout.
func cloneGitRepo(t *testing.T, g Repo, options ...string) Repo {
	t.Helper()
	mustGit(t, g, "", "config", "uploadpack.allowFilter", "true")
	clone := Repo{Dir: filepath.Join(t.TempDir(), "clone")}
	args := append([]string{"clone", "--quiet", "--no-checkout"}, options...)
	mustGit(t, g, "", append(args, "file://"+filepath.ToSlash(g.Dir), clone.Dir)...)
	return clone
}

// In a partial clone the record has all paths, and hunks of files whose old and new
// content it has.
func TestGitRecordOfAPartialClone(t *testing.T) {
	gitrepotest.IgnoreConfig(t)
	g, shas := newGitRepo(t, nil,
		gitrepotest.Tree{"here": gitrepotest.TextFile(gitPoem), "half here": gitrepotest.TextFile(gitPoem + "half\n"),
			"not here": gitrepotest.TextFile(gitPoem + "not\n"), "binary": gitrepotest.TextFile(gitBlob),
			"alike": gitrepotest.TextFile(gitPoem + "alike\n"), "same": gitrepotest.TextFile("same\n"),
			"dir/here": gitrepotest.TextFile(gitPoem + "dir\n")},
		gitrepotest.Tree{"here": gitrepotest.TextFile(gitPoem + "x\n"),
			"half here": gitrepotest.TextFile(gitPoem + "x half\n"), "not here": gitrepotest.TextFile(gitPoem + "x not\n"),
			"binary":    gitrepotest.TextFile(gitBlob + "x"),
			"alike now": gitrepotest.TextFile(gitPoem + "alike x\n"), "same now": gitrepotest.TextFile("same\n"),
			"dir/here": gitrepotest.ExecFile(gitPoem + "x dir\n")})
	clone := cloneGitRepo(t, g, "--filter=blob:none")
	for _, name := range []string{"main~1:here", "main:here", "main~1:half here", "main~1:binary", "main:binary",
		"main~1:dir/here", "main:dir/here"} {
		mustGit(t, clone, "", "cat-file", "-e", name) // fetches it
	}
	want := []string{"D alike", "A alike now", "M binary binary", "M dir/here 100644>100755 [8,1 +1 seven]", "M half here",
		"M here [7,0 +1 seven]", "M not here", "R same -> same now"}
	if got := outline(mustRecord(t, clone, shas[0], shas[1])); !slices.Equal(got, want) {
		t.Errorf("%q, want\n%q", got, want)
	}
	r, err := clone.ReadCommit(t.Context(), Query{Rev: "main", Base: "main~1"})
	if err != nil || !slices.Equal(outline(r.Changes), want) {
		t.Errorf("%q (%v), want\n%q", outline(r.Changes), err, want)
	}

	// With the content that is needed to find renames, those are complete too.
	for _, name := range []string{"main~1:alike", "main:alike now"} {
		mustGit(t, clone, "", "cat-file", "-e", name)
	}
	want = []string{"R alike -> alike now [8,1 +1 seven]", "M binary binary", "M dir/here 100644>100755 [8,1 +1 seven]",
		"M half here", "M here [7,0 +1 seven]", "M not here", "R same -> same now"}
	if got := outline(mustRecord(t, clone, shas[0], shas[1])); !slices.Equal(got, want) {
		t.Errorf("%q, want\n%q", got, want)
	}
}

// If a clone lacks a commit's base or folders, there is no change record, not an
// empty one.
func TestGitRecordOfAnIncompleteClone(t *testing.T) {
	gitrepotest.IgnoreConfig(t)
	g, shas := newGitRepo(t, nil, gitrepotest.Tree{"d/a": gitrepotest.TextFile("1\n")},
		gitrepotest.Tree{"d/a": gitrepotest.TextFile("2\n")}, gitrepotest.Tree{"d/a": gitrepotest.TextFile("3\n")})

	for name, test := range map[string]struct {
		options   []string
		mainline  string
		record    bool
		ancestors int
	}{
		"a clone without folders":             {[]string{"--filter=tree:0"}, "main~1", false, 1},
		"a shallow clone of one commit":       {[]string{"--depth=1"}, "", false, 0},
		"a shallow clone with the parent":     {[]string{"--depth=2"}, "", true, 1},
		"a shallow clone with the named base": {[]string{"--depth=2"}, "main~1", true, 1},
		"a full clone":                        {nil, "main~2", true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			clone := cloneGitRepo(t, g, test.options...)
			r, err := clone.ReadCommit(t.Context(), Query{Rev: "main", Base: test.mainline})
			if err != nil || (r.Changes != nil) != test.record || len(r.Ancestors) != test.ancestors {
				t.Errorf("base %s of %q: changes %q, ancestors %q (%v)", r.Base, shas, outline(r.Changes), r.Ancestors, err)
			}
			if test.record && !slices.Equal(outline(r.Changes), []string{"M d/a [1,1 +1 ]"}) {
				t.Errorf("changes %q", outline(r.Changes))
			}
		})
	}
}
