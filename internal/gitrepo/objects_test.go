package gitrepo

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The objects are found wherever git has them, and nothing of ours is left.
func TestGitObjectsAreFound(t *testing.T) {
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
			if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
				t.Errorf("left: %q (%v)", left, err)
			}
		})
	}

	check("in a work tree", f.Repo)
	check("in a folder of it", Repo{Dir: filepath.Join(f.Forest.Dir, "folder")})
	check("in the git folder", Repo{Dir: filepath.Join(f.Forest.Dir, ".git")})
	f.Git("worktree", "add", "--quiet", "--detach", filepath.Join(elsewhere, "linked"))
	check("in a linked work tree", Repo{Dir: filepath.Join(elsewhere, "linked")})
	f.Git("clone", "--quiet", "--bare", ".", filepath.Join(elsewhere, "bare: repo"))
	check("in a bare repository", Repo{Dir: filepath.Join(elsewhere, "bare: repo")})
	f.Git("clone", "--quiet", "--shared", ".", filepath.Join(elsewhere, "shared"))
	check("in a clone that borrows them", Repo{Dir: filepath.Join(elsewhere, "shared")})
	t.Run("by a relative name", func(t *testing.T) {
		t.Chdir(filepath.Join(f.Forest.Dir, "folder"))
		check("here", Repo{Dir: "."})
		check("above", Repo{Dir: ".."})
	})

	f.Git("init", "--quiet", filepath.Join(elsewhere, "empty"))
	t.Setenv("GIT_ALTERNATE_OBJECT_DIRECTORIES", filepath.Join(f.Forest.Dir, ".git", "objects"))
	check("where the environment names more of them, as in a hook of a server",
		Repo{Dir: filepath.Join(elsewhere, "empty")})
	t.Setenv("GIT_DIR", filepath.Join(f.Forest.Dir, ".git"))
	check("where the environment names the repository, as in any hook", Repo{Dir: elsewhere})
}
