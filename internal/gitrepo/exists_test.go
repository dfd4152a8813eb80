package gitrepo

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/gitrepo/gitrepotest"
	"github.com/ledgerd/ledgerd/internal/must"
)

// A clone that git refuses is an error that says why. It never counts as no clone.
func TestExistsSaysWhyACloneCannotBeUsed(t *testing.T) {
	const gone = "not a git repository: "
	for name, test := range map[string]struct {
		spoil func(t *testing.T, f forest) (folder string)
		want  string // a substring of the error
	}{
		"of another user": {func(t *testing.T, f forest) string {
			t.Setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
			return f.Forest.Dir
		}, "it belongs to another user (if you trust it, run 'git config --global --add safe.directory "},
		"a folder of one of another user": {func(t *testing.T, f forest) string {
			t.Setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
			return filepath.Join(f.Forest.Dir, "sub")
		}, "safe.directory "},
		"a work tree whose repository is gone": {func(t *testing.T, f forest) string {
			linked := filepath.Join(t.TempDir(), "linked")
			f.Git("worktree", "add", "--quiet", "--detach", linked)
			must.OK(t, os.RemoveAll(filepath.Join(f.Forest.Dir, ".git")))
			return linked
		}, gone},
		"a submodule whose repository is gone": {func(t *testing.T, f forest) string {
			gitrepotest.WriteFile(t, filepath.Join(f.Forest.Dir, "sub", ".git"), "gitdir: ../.git/modules/sub\n")
			return filepath.Join(f.Forest.Dir, "sub")
		}, gone},
		"a file .git without a folder": {func(t *testing.T, f forest) string {
			gitrepotest.WriteFile(t, filepath.Join(f.Forest.Dir, "sub", ".git"), "x\n")
			return filepath.Join(f.Forest.Dir, "sub")
		}, "invalid gitfile format"},
		"a damaged configuration": {func(t *testing.T, f forest) string {
			gitrepotest.WriteFile(t, filepath.Join(f.Forest.Dir, ".git", "config"), "[core\n")
			return f.Forest.Dir
		}, "bad config"},
		"a newer format": {func(t *testing.T, f forest) string {
			f.Git("config", "core.repositoryFormatVersion", "999")
			return f.Forest.Dir
		}, "repo version"},
		"no HEAD": {func(t *testing.T, f forest) string {
			must.OK(t, os.Remove(filepath.Join(f.Forest.Dir, ".git", "HEAD")))
			return filepath.Join(f.Forest.Dir, "sub")
		}, "not a git repository"},
		"an empty .git": {func(t *testing.T, f forest) string {
			folder := filepath.Join(t.TempDir(), "clone")
			must.OK(t, os.MkdirAll(filepath.Join(folder, ".git"), 0o755))
			return folder
		}, "not a git repository"},
		"a link .git to nothing": {func(t *testing.T, f forest) string {
			folder := t.TempDir()
			must.OK(t, os.Symlink("nothing", filepath.Join(folder, ".git")))
			return folder
		}, "not a git repository"},
		"no git": {func(t *testing.T, f forest) string {
			t.Setenv("PATH", t.TempDir())
			return f.Forest.Dir
		}, "git not found in PATH: install git"},
		"another GIT_DIR": {func(t *testing.T, f forest) string {
			t.Setenv("GIT_DIR", filepath.Join(f.Forest.Dir, "nothing"))
			return f.Forest.Dir
		}, "nothing"},
		"a bare repository": {func(t *testing.T, f forest) string {
			f.Git("clone", "--quiet", "--bare", ".", filepath.Join(f.Forest.Dir, "sub", "bare.git"))
			return filepath.Join(f.Forest.Dir, "sub", "bare.git")
		}, "looks like a bare repository"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newForest(t)
			f.Commit("sub/file", "x\n")
			checkUnusable(t, test.spoil(t, f), test.want)
		})
	}
}

// checkUnusable checks that no function treats the folder as one outside a repository.
func checkUnusable(t *testing.T, folder, want string) {
	t.Helper()
	t.Chdir(folder)
	id := strings.Repeat("ab", 20)
	exists, err := Repo{Dir: "."}.Exists(t.Context())
	_, headErr := Resolve(t.Context(), "HEAD")
	_, idErr := Resolve(t.Context(), id)
	for what, err := range map[string]error{"exists": err, "HEAD": headErr, "an ID": idErr} {
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	if exists {
		t.Error("it exists")
	}

	// What the ledger knows can be read without git.
	if sha, err := Find(t.Context(), id); err != nil || sha != id {
		t.Errorf("to read: %q, %v", sha, err)
	}
	if _, err := Find(t.Context(), "HEAD"); err == nil {
		t.Error("HEAD is found")
	}
}

// Git refuses the files of another user, as in a container.
func TestCloneOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give files to another user")
	}
	f := newForest(t)
	f.Commit("file", "x\n")
	const other = 12345
	must.OK(t, filepath.WalkDir(f.Forest.Dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, other, other)
	}))
	must.OK(t, os.Lchown(f.Forest.Dir, other, other))
	checkUnusable(t, f.Forest.Dir, "run 'git config --global --add safe.directory "+f.Forest.Dir+"')")

	f.Git("config", "--global", "--add", "safe.directory", f.Forest.Dir)
	if exists, err := f.Exists(t.Context()); err != nil || !exists {
		t.Errorf("trusted: %v, %v", exists, err)
	}
}

// Without a repository, a full sha needs no git.
func TestNoRepository(t *testing.T) {
	gitrepotest.IgnoreConfig(t)
	outer := t.TempDir()
	gitrepotest.Git(t, outer, "", "init", "--quiet")
	id := strings.Repeat("ab", 20)
	for name, prepare := range map[string]func(t *testing.T) string{
		"an empty folder": func(t *testing.T) string { return t.TempDir() },
		"an empty folder without git": func(t *testing.T) string {
			t.Setenv("PATH", t.TempDir())
			return t.TempDir()
		},
		"below a ceiling": func(t *testing.T) string {
			folder := filepath.Join(outer, "a", "b")
			must.OK(t, os.MkdirAll(folder, 0o755))
			t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Join(outer, "other")+string(os.PathListSeparator)+outer)
			return folder
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(prepare(t))
			if exists, err := (Repo{Dir: "."}).Exists(t.Context()); exists || err != nil {
				t.Errorf("exists: %v, %v", exists, err)
			}
			if sha, err := Resolve(t.Context(), id); sha != id || err != nil {
				t.Errorf("an ID: %q, %v", sha, err)
			}
			if _, err := Resolve(t.Context(), "HEAD"); err == nil {
				t.Error("HEAD is resolved")
			}
		})
	}
}

// A message of git names a mount point only if git has stopped there.
func TestMountPointInAMessage(t *testing.T) {
	const (
		gone = "fatal: not a git repository (or any of the parent directories): .git"
		at   = "fatal: not a git repository (or any parent up to mount point "
		stop = ")\nStopping at filesystem boundary (GIT_DISCOVERY_ACROSS_FILESYSTEM not set)."
	)
	for name, test := range map[string]struct{ stderr, want string }{
		"no repository":            {gone, ""},
		"a mount point":            {at + "/mnt" + stop, "/mnt"},
		"the root":                 {at + "/" + stop, "/"},
		"a name with brackets":     {at + "/volume (a)" + stop, "/volume (a)"},
		"a name with a line feed":  {at + "/a)\nb" + stop, "/a)\nb"},
		"after a warning":          {"warning: unable to access '/root/.gitconfig'\n" + at + "/mnt" + stop, "/mnt"},
		"a message that goes on":   {at + "/mnt" + stop + "\n", "/mnt"},
		"another message":          {"fatal: bad config line 1 in file .git/config", ""},
		"a gitfile without target": {"fatal: not a git repository: ../.git/modules/sub", ""},
		"nothing":                  {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := mountPoint(test.stderr); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// Git does not search on another file system, such as above a mounted volume of a container. A broken
// clone on the same file system is still an error.
func TestMountPoint(t *testing.T) {
	gitrepotest.IgnoreConfig(t)
	outer := t.TempDir()
	gitrepotest.Git(t, outer, "", "init", "--quiet")
	volume := filepath.Join(outer, "volume (a)")
	must.OK(t, os.Mkdir(volume, 0o755))
	if out, err := exec.Command("mount", "-t", "tmpfs", "none", volume).CombinedOutput(); err != nil {
		t.Skipf("cannot mount: %v: %s", err, out)
	}
	t.Cleanup(func() { must.OK(t, exec.Command("umount", volume).Run()) })
	inner := Repo{Dir: filepath.Join(volume, "folder")}
	must.OK(t, os.Mkdir(inner.Dir, 0o755))

	if exists, err := inner.Exists(t.Context()); exists || err != nil {
		t.Errorf("below a mount point: %v, %v", exists, err)
	}
	must.OK(t, os.Mkdir(filepath.Join(volume, ".git"), 0o755))
	if exists, err := inner.Exists(t.Context()); exists || err == nil {
		t.Errorf("a broken clone below a mount point: %v, %v", exists, err)
	}
	must.OK(t, os.Remove(filepath.Join(volume, ".git")))
	t.Setenv("GIT_DISCOVERY_ACROSS_FILESYSTEM", "1")
	if exists, err := inner.Exists(t.Context()); !exists || err != nil {
		t.Errorf("across file systems: %v, %v", exists, err)
	}
}
