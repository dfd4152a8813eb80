package demo

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/internal/gitrepo"
)

// A history is the git repository that the demo shows, and its last commits,
// the newest first.
type history struct {
	gitrepo.Repo
	name    string // fit to name a repo
	made    bool   // by the demo
	commits []string
}

// findHistory returns the last commits of the git work tree that we stand in,
// or of a small history which it makes in dir.
func findHistory(ctx context.Context, dir string) (*history, error) {
	if _, err := exec.LookPath("git"); err != nil {
		return nil, fmt.Errorf("the demo needs git, and there is no git command in PATH")
	}
	here := &history{Repo: gitrepo.Repo{Dir: "."}}
	if top, err := here.Read(ctx, "rev-parse", "--show-toplevel"); err == nil {
		here.name = fitName(filepath.Base(strings.TrimSpace(top)))
		if err := here.read(ctx); err == nil && len(here.commits) > 0 {
			return here, nil
		}
	}
	made := &history{Repo: gitrepo.Repo{Dir: dir, Isolated: true}, name: "sample", made: true}
	if err := made.make(ctx); err != nil {
		return nil, fmt.Errorf("making a small history: %w", err)
	}
	return made, made.read(ctx)
}

// fitName makes a folder's name one of a repo.
func fitName(folder string) string {
	name := strings.Map(func(r rune) rune {
		if r == '.' || r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '-'
	}, folder)
	if strings.Trim(name, ".-/") == "" {
		return "repo"
	}
	return name[:min(len(name), 100)]
}

func (h *history) read(ctx context.Context) error {
	out, err := h.Read(ctx, "rev-list", "--first-parent", fmt.Sprintf("--max-count=%d", maxCommits), "HEAD")
	h.commits = strings.Fields(out)
	return err
}

// make makes a repository with a commit for each state.
func (h *history) make(ctx context.Context) error {
	if err := os.Mkdir(h.Dir, 0o755); err != nil {
		return err
	}
	if err := h.Write(ctx, "init", "--quiet", "--template="); err != nil {
		return err
	}
	if err := h.Write(ctx, "symbolic-ref", "HEAD", "refs/heads/main"); err != nil {
		return err
	}
	when := time.Now().Add(-maxCommits * time.Hour)
	for i, message := range []string{
		"Add a greeting", "Greet whoever is named", "Say goodbye too", "Keep names out of the log",
		"Greet in three languages",
	} {
		text := fmt.Sprintf("%s\n", strings.Repeat("hello\n", i+1))
		if err := os.WriteFile(filepath.Join(h.Dir, fmt.Sprintf("greeting-%d.txt", i/2)), []byte(text), 0o644); err != nil {
			return err
		}
		if err := h.Write(ctx, "add", "."); err != nil {
			return err
		}
		date := when.Add(time.Duration(i) * time.Hour).Format(time.RFC3339)
		if err := h.Write(ctx, "commit", "--quiet", "--date="+date, "--message="+message); err != nil {
			return err
		}
	}
	return nil
}

// maxCommits is how many commits the demo shows: one for each state.
const maxCommits = 5
