package gitrepo

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/gitobject"
)

// Objects are read from every location where git stores them, and no temporary files
// remain.
func TestGitObjectLocations(t *testing.T) {
	f := newForest(t)
	first := f.Commit("file", gitPoem)
	f.Commit("folder/file", "x\n")
	last := f.Commit("file", gitPoem+"eight\n")
	want := []string{"M file [7,0 +1 seven]", "A folder/file"}
	elsewhere := t.TempDir()
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	check := func(name string, g Repo) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			if got := outline(mustRecord(t, g, first, last)); !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
			if got := g.contained(t.Context(), last, []string{first}); !slices.Equal(got, []string{first}) {
				t.Errorf("contained: %q", got)
			}
			if files, err := os.ReadDir(tmp); err != nil || len(files) > 0 {
				t.Errorf("temporary files: %q (%v)", files, err)
			}
		})
	}

	check("in a work tree", f.Repo)
	check("in a folder of a work tree", Repo{Dir: filepath.Join(f.Forest.Dir, "folder")})
	f.Git("worktree", "add", "--quiet", "--detach", filepath.Join(elsewhere, "linked"))
	check("in a linked work tree", Repo{Dir: filepath.Join(elsewhere, "linked")})
	f.Git("clone", "--quiet", "--bare", ".", filepath.Join(elsewhere, "bare: repo"))
	f.Git("clone", "--quiet", "--shared", ".", filepath.Join(elsewhere, "shared"))
	check("in a shared clone", Repo{Dir: filepath.Join(elsewhere, "shared")})
	t.Run("by a relative path", func(t *testing.T) {
		t.Chdir(filepath.Join(f.Forest.Dir, "folder"))
		check("current folder", Repo{Dir: "."})
		check("parent folder", Repo{Dir: ".."})
	})

	for name, dir := range map[string]string{
		"the git folder": filepath.Join(f.Forest.Dir, ".git"), "a bare repository": filepath.Join(elsewhere, "bare: repo"),
	} {
		t.Run("named by GIT_DIR", func(t *testing.T) {
			t.Setenv("GIT_DIR", dir)
			check("in "+name, Repo{Dir: dir})
		})
	}

	f.Git("init", "--quiet", filepath.Join(elsewhere, "empty"))
	t.Setenv("GIT_ALTERNATE_OBJECT_DIRECTORIES", filepath.Join(f.Forest.Dir, ".git", "objects"))
	check("alternates in the environment, as in a server hook", Repo{Dir: filepath.Join(elsewhere, "empty")})
	t.Setenv("GIT_DIR", filepath.Join(f.Forest.Dir, ".git"))
	check("GIT_DIR in the environment, as in any hook", Repo{Dir: elsewhere})
}

// Commit objects are those that the ledger takes, in the order of the list. One that it refuses would cost the request
// all others.
func TestCommitObjectsAreThoseThatTheLedgerTakes(t *testing.T) {
	f := newForest(t)
	first := f.Commit("file", "1\n")
	tree := f.Git("rev-parse", "HEAD^{tree}")
	long := strings.Repeat("a name ", 100)
	odd := mustGit(t, f.Repo, "tree "+tree+"\nauthor "+long+"<a@b> 1 +0000\ncommitter C <c@d> 1 +0000\n\nodd\n",
		"hash-object", "-t", "commit", "-w", "--stdin", "--literally")
	large := mustGit(t, f.Repo, "tree "+tree+"\nauthor A <a@b> 1 +0000\ncommitter C <c@d> 1 +0000\n\n"+
		strings.Repeat("x", gitobject.MaxSize), "hash-object", "-t", "commit", "-w", "--stdin")
	last := f.Commit("file", "2\n")

	objects, err := f.CommitObjects(t.Context(), []string{last, large, tree, odd, strings.Repeat("0", 40), first})
	must.OK(t, err)
	var got []string
	for _, o := range objects {
		got = append(got, o.Commit)
	}
	if want := []string{last, first}; !slices.Equal(got, want) {
		t.Errorf("objects of %q, want %q", got, want)
	}
}
