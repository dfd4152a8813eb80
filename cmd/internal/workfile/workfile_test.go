package workfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/gitrepo/gitrepotest"
	"github.com/ledgerd/ledgerd/internal/must"
)

// TestFind checks where the file is searched, and that it is bounded.
func TestFind(t *testing.T) {
	gitrepotest.IgnoreConfig(t)
	outside := t.TempDir()
	t.Setenv("GIT_CEILING_DIRECTORIES", outside)
	root := filepath.Join(outside, "code")
	below := filepath.Join(root, "a", "b")
	must.OK(t, os.MkdirAll(below, 0o755))
	write := func(folder, text string) {
		t.Helper()
		must.OK(t, os.WriteFile(filepath.Join(folder, Name), []byte(text), 0o644))
	}
	find := func(folder, want string) {
		t.Helper()
		f, err := Find(t.Context(), folder)
		if err != nil || f.Repo != want {
			t.Errorf("%s: %q, %v, want %q", folder, f.Repo, err, want)
		}
	}

	write(outside, "repo: acme/outside\n")
	write(root, "repo: acme/code\n")
	find(below, "") // no work tree
	gitrepotest.Git(t, root, "", "init", "--quiet")
	find(below, "acme/code")
	find(root, "acme/code")
	write(below, "repo: acme/below\nserver: https://ledger.example\n")
	find(below, "acme/below")
	must.OK(t, os.Remove(filepath.Join(root, Name)))
	find(root, "") // not from above the work tree

	for name, text := range map[string]string{
		"too long": "repo: acme/" + strings.Repeat("a", maxBytes),
		"unknown":  "token: x\n",
		"no text":  "repo: [a]\n",
	} {
		write(root, text)
		if _, err := Find(t.Context(), root); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want one line", name, err)
		}
	}
}
