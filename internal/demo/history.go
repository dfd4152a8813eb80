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
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// A history is the git repository that the demo uses, with its latest commits,
// newest first.
type history struct {
	gitrepo.Repo
	name    string // valid as a repo name
	sample  bool   // created by the demo
	commits []string
	// people holds the names of all who wrote the commits, and their messages, which may
	// name more authors. It is folded as policies compare names.
	people string
}

// findHistory returns the latest commits of the current git work tree. If there is
// none, it creates a sample repository in dir.
func findHistory(ctx context.Context, dir string) (*history, error) {
	if _, err := exec.LookPath("git"); err != nil {
		return nil, fmt.Errorf("git not found in PATH: install git to run the demo")
	}

	current := &history{Repo: gitrepo.Repo{Dir: "."}}
	if top, err := current.Read(ctx, "rev-parse", "--show-toplevel"); err == nil {
		current.name = repoName(filepath.Base(strings.TrimSpace(top)))
		if err := current.read(ctx); err == nil && len(current.commits) > 0 {
			return current, nil
		}
	}

	sample := &history{Repo: gitrepo.Repo{Dir: dir, Isolated: true}, name: "sample", sample: true}
	if err := sample.create(ctx); err != nil {
		return nil, fmt.Errorf("create a sample repository: %w", err)
	}
	return sample, sample.read(ctx)
}

// repoName turns a folder's name into a valid repo name.
func repoName(folder string) string {
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
	if h.commits = strings.Fields(out); err != nil || len(h.commits) == 0 {
		return err
	}
	log := []string{"log", "--no-show-signature", "--no-color", "--encoding=UTF-8", "--no-walk",
		"--format=%an%n%ae%n%cn%n%ce%n%B"}
	people, err := h.Read(ctx, append(log, h.commits...)...)
	h.people = policy.FoldName(people)
	return err
}

// stranger returns a name that nobody has who wrote the commits: the given one or, if the
// commits mention it, with a number.
func (h *history) stranger(name string) string {
	candidate := name
	for n := 2; strings.Contains(h.people, candidate); n++ {
		candidate = fmt.Sprintf("%s%d", name, n)
	}
	return candidate
}

// create creates a repository with a commit for each state.
func (h *history) create(ctx context.Context) error {
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
		"Add a greeting", "Greet people by name", "Say goodbye", "Keep names out of the log",
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

// maxCommits is how many commits the demo uses: one for each state.
const maxCommits = 5
