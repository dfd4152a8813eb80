package cmd

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
)

// A file is what a tree of a test holds at a path.
type gitFile struct{ mode, content string }

func textFile(content string) gitFile { return gitFile{"100644", content} }
func execFile(content string) gitFile { return gitFile{"100755", content} }
func linkFile(target string) gitFile  { return gitFile{"120000", target} }
func moduleFile(digit string) gitFile { return gitFile{"160000", strings.Repeat(digit, 40)} }

type gitTree map[string]gitFile

// useNoGitConfig makes git forget whose machine this is.
func useNoGitConfig(t testing.TB) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("this needs git")
	}
	for _, name := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+name+"_NAME", "Ada")
		t.Setenv("GIT_"+name+"_EMAIL", "ada@example.org")
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
}

// newGitRepo makes a repository without a work tree's files, whose main holds a
// commit for each tree, and returns their shas.
func newGitRepo(t testing.TB, options []string, trees ...gitTree) (gitRepo, []string) {
	t.Helper()
	g := gitRepo{dir: t.TempDir()}
	mustGit(t, g, "", append([]string{"init", "--quiet", "--initial-branch=main"}, options...)...)
	var in bytes.Buffer
	for _, tree := range trees {
		writeCommit(&in, tree)
	}
	mustGit(t, g, in.String(), "fast-import", "--quiet")
	return g, strings.Fields(mustGit(t, g, "", "rev-list", "--reverse", "main"))
}

// writeCommit writes a commit on main the way git fast-import reads one.
func writeCommit(in *bytes.Buffer, tree gitTree) {
	in.WriteString("commit refs/heads/main\ncommitter Ada <ada@example.org> 1700000000 +0000\ndata 2\nx\n\ndeleteall\n")
	for path, f := range tree {
		name := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
		if f.mode == "160000" {
			fmt.Fprintf(in, "M %s %s %s\n", f.mode, f.content, name)
			continue
		}
		fmt.Fprintf(in, "M %s inline %s\ndata %d\n%s\n", f.mode, name, len(f.content), f.content)
	}
	in.WriteString("\n")
}

func mustGit(t testing.TB, g gitRepo, in string, args ...string) string {
	t.Helper()
	command := exec.Command("git", append([]string{"-C", g.dir}, args...)...)
	command.Stdin = strings.NewReader(in)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, &stderr)
	}
	return strings.TrimSpace(string(out))
}

// mustRecord returns the change record between two commits.
func mustRecord(t testing.TB, g gitRepo, from, to string) []ledger.Change {
	t.Helper()
	objects, err := g.objects(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer objects.close()
	changes, err := objects.changes(t.Context(), from, to)
	if err != nil {
		t.Fatal(err)
	}
	if err := (ledger.Registration{Changes: changes}).Check(); err != nil {
		t.Errorf("the ledger would refuse it: %v", err)
	}
	return changes
}

// outline writes a change record a line a change, without its hashes.
func outline(changes []ledger.Change) []string {
	lines := []string{}
	for _, c := range changes {
		line := c.Status + " "
		if c.OldPath != "" {
			line += c.OldPath + " -> "
		}
		line += c.Path
		if c.OldMode != "" && c.Mode != "" && c.OldMode != c.Mode {
			line += " " + c.OldMode + ">" + c.Mode
		}
		if c.Binary {
			line += " binary"
		}
		for _, h := range c.Hunks {
			line += fmt.Sprintf(" [%d,%d +%d %s]", h.Start, h.Lines, h.Added, h.Function)
		}
		lines = append(lines, line)
	}
	return lines
}
