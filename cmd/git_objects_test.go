package cmd

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The objects are found wherever git has them, and nothing of ours is left.
func TestGitObjectsAreFound(t *testing.T) {
	f := newForest(t)
	first := f.commit("file", gitPoem)
	f.commit("folder/file", "x\n")
	last := f.commit("file", gitPoem+"eight\n")
	want := []string{"M file [7,0 +1 seven]", "A folder/file"}
	elsewhere := t.TempDir()
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	check := func(name string, g gitRepo) {
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

	check("in a work tree", f.gitRepo)
	check("in a folder of it", gitRepo{dir: filepath.Join(f.dir, "folder")})
	check("in the git folder", gitRepo{dir: filepath.Join(f.dir, ".git")})
	f.git("worktree", "add", "--quiet", "--detach", filepath.Join(elsewhere, "linked"))
	check("in a linked work tree", gitRepo{dir: filepath.Join(elsewhere, "linked")})
	f.git("clone", "--quiet", "--bare", ".", filepath.Join(elsewhere, "bare: repo"))
	check("in a bare repository", gitRepo{dir: filepath.Join(elsewhere, "bare: repo")})
	f.git("clone", "--quiet", "--shared", ".", filepath.Join(elsewhere, "shared"))
	check("in a clone that borrows them", gitRepo{dir: filepath.Join(elsewhere, "shared")})
	t.Run("by a relative name", func(t *testing.T) {
		t.Chdir(filepath.Join(f.dir, "folder"))
		check("here", gitRepo{dir: "."})
		check("above", gitRepo{dir: ".."})
	})

	f.git("init", "--quiet", filepath.Join(elsewhere, "empty"))
	t.Setenv("GIT_ALTERNATE_OBJECT_DIRECTORIES", filepath.Join(f.dir, ".git", "objects"))
	check("where the environment names more of them, as in a hook of a server", gitRepo{dir: filepath.Join(elsewhere, "empty")})
	t.Setenv("GIT_DIR", filepath.Join(f.dir, ".git"))
	check("where the environment names the repository, as in any hook", gitRepo{dir: elsewhere})
}
