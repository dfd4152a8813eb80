package gitrepo

import (
	"fmt"
	"testing"

	"github.com/ledgerd/ledgerd/internal/gitrepo/gitrepotest"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// newGitRepo is gitrepotest.New, but returns a Repo.
func newGitRepo(t testing.TB, options []string, trees ...gitrepotest.Tree) (Repo, []string) {
	t.Helper()
	dir, commits := gitrepotest.New(t, options, trees...)
	return Repo{Dir: dir}, commits
}

// mustGit is gitrepotest.Git for a Repo.
func mustGit(t testing.TB, g Repo, in string, args ...string) string {
	t.Helper()
	return gitrepotest.Git(t, g.Dir, in, args...)
}

// A forest is a gitrepotest.Forest that is also a Repo.
type forest struct {
	gitrepotest.Forest
	Repo
	t *testing.T
}

func newForest(t *testing.T) forest {
	f := gitrepotest.NewForest(t)
	return forest{f, Repo{Dir: f.Dir}, t}
}

// mustRecord returns the change record between two commits.
func mustRecord(t testing.TB, g Repo, from, to string) []radar.Change {
	t.Helper()
	objects, err := g.objects(t.Context())
	must.OK(t, err)
	defer objects.close()
	changes, err := objects.changes(t.Context(), from, to)
	must.OK(t, err)
	if err := (ledger.Registration{Changes: changes}).Check(); err != nil {
		t.Errorf("the ledger would reject the record: %v", err)
	}
	return changes
}

// outline formats a change record, one line per change, without hashes.
func outline(changes []radar.Change) []string {
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
