// Package gitrepotest creates git repositories for tests.
package gitrepotest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/testenv"
)

// A Tree is the content of a commit: its files by path.
type Tree map[string]File

// A File is an entry of a Tree.
type File struct{ Mode, Content string }

// TextFile returns a regular file.
func TextFile(content string) File { return File{"100644", content} }

// ExecFile returns an executable file.
func ExecFile(content string) File { return File{"100755", content} }

// LinkFile returns a symbolic link.
func LinkFile(target string) File { return File{"120000", target} }

// ModuleFile returns a submodule at the commit whose id is the digit 40 times.
func ModuleFile(digit string) File { return File{"160000", strings.Repeat(digit, 40)} }

// IgnoreConfig hides the system and user configuration from git, and sets an author.
// It skips the test if git is not installed.
func IgnoreConfig(t testing.TB) {
	testenv.Need(t, "git")
	for _, name := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+name+"_NAME", "Ada")
		t.Setenv("GIT_"+name+"_EMAIL", "ada@example.org")
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	config := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config, []byte("[maintenance]\n\tauto = false\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_CONFIG_GLOBAL", config)
	t.Setenv("GIT_TEMPLATE_DIR", "") // no repository needs the samples of hooks
}

// New creates a repository with a commit on main for each tree, and returns its
// folder and the commits' ids. No files are checked out.
func New(t testing.TB, options []string, trees ...Tree) (dir string, commits []string) {
	t.Helper()
	dir = t.TempDir()
	Git(t, dir, "", append([]string{"init", "--quiet", "--initial-branch=main"}, options...)...)
	var in bytes.Buffer
	for _, tree := range trees {
		writeCommit(&in, tree)
	}
	Git(t, dir, in.String(), "fast-import", "--quiet")
	return dir, strings.Fields(Git(t, dir, "", "rev-list", "--reverse", "main"))
}

// writeCommit writes a commit on main in the format of git fast-import.
func writeCommit(in *bytes.Buffer, tree Tree) {
	in.WriteString("commit refs/heads/main\ncommitter Ada <ada@example.org> 1700000000 +0000\ndata 2\nx\n\ndeleteall\n")
	for path, f := range tree {
		name := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
		if f.Mode == "160000" {
			fmt.Fprintf(in, "M %s %s %s\n", f.Mode, f.Content, name)
			continue
		}
		fmt.Fprintf(in, "M %s inline %s\ndata %d\n%s\n", f.Mode, name, len(f.Content), f.Content)
	}
	in.WriteString("\n")
}

// Git runs git in a folder, with in as its standard input, and returns its output
// without surrounding white space.
func Git(t testing.TB, dir, in string, args ...string) string {
	t.Helper()
	command := exec.Command("git", append([]string{"-C", dir}, args...)...)
	command.Stdin = strings.NewReader(in)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, &stderr)
	}
	return strings.TrimSpace(string(out))
}

// A Forest is a repository with several branches, and a work tree.
type Forest struct {
	Dir string
	t   *testing.T
}

// NewForest returns a repository without commits.
func NewForest(t *testing.T) Forest {
	IgnoreConfig(t)
	f := Forest{t.TempDir(), t}
	f.Git("init", "--quiet", "--initial-branch=main")
	return f
}

// Git runs git in the repository and returns its output.
func (f Forest) Git(args ...string) string {
	f.t.Helper()
	return Git(f.t, f.Dir, "", args...)
}

// Commit writes a file, commits all changes and returns the commit's id.
func (f Forest) Commit(name, content string) string {
	f.t.Helper()
	WriteFile(f.t, filepath.Join(f.Dir, name), content)
	f.Git("add", "--all")
	f.Git("commit", "--quiet", "--message", name)
	return f.CheckedOut()
}

// CheckedOut returns the id of the commit that is checked out, which git has just written to a file.
func (f Forest) CheckedOut() string {
	f.t.Helper()
	head := "HEAD"
	for {
		text, err := os.ReadFile(filepath.Join(f.Dir, ".git", head))
		if err != nil {
			return f.Git("rev-parse", "HEAD")
		}
		value := strings.TrimSpace(string(text))
		ref, isRef := strings.CutPrefix(value, "ref: ")
		if !isRef {
			return value
		}
		head = ref
	}
}

// Branch creates a branch from another one and changes one file on it. The
// current branch stays checked out.
func (f Forest) Branch(branch, from, name, content string) string {
	f.t.Helper()
	f.Git("checkout", "--quiet", "-b", branch, from)
	defer f.Git("checkout", "--quiet", "-")
	return f.Commit(name, content)
}

// WriteFile writes a file and creates the folders above it.
func WriteFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
