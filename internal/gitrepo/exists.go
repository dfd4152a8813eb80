package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Exists reports whether git finds a repository in g.Dir or above it. It returns an error if there is
// one that cannot be used: git refuses it since it belongs to another user or is damaged, git is not
// installed, or git must not be run since the folder can be among the files of a commit.
func (g Repo) Exists(ctx context.Context) (bool, error) {
	_, err := g.Read(ctx, "rev-parse", "--git-dir")
	if err == nil {
		return true, nil
	}
	if _, ok := errors.AsType[untrustedFolder](err); ok {
		return false, err
	}
	if _, ok := errors.AsType[foreignRepository](err); ok {
		return false, err
	}
	entry := g.entry()
	if entry == "" {
		return false, nil
	}
	if e, ok := errors.AsType[*commandError](err); ok {
		e.stderr = firstLines(e.stderr)
	}
	return false, unusableRepository{entry, err}
}

// entry returns the entry .git by which git should find the repository, or what GIT_DIR names. It is
// empty if there is none. Git searches from g.Dir upwards, below GIT_CEILING_DIRECTORIES.
func (g Repo) entry() string {
	if dir := g.getenv("GIT_DIR"); dir != "" {
		return dir
	}
	ceilings := filepath.SplitList(g.getenv("GIT_CEILING_DIRECTORIES"))
	for i, ceiling := range ceilings {
		if path, err := filepath.EvalSymlinks(ceiling); err == nil {
			ceilings[i] = path
		}
	}

	folders, err := upwards(g.Dir)
	if err != nil {
		return ""
	}
	for folder := range folders {
		entry := filepath.Join(folder, ".git")
		if _, err := os.Lstat(entry); err == nil {
			return entry
		}
		if slices.Contains(ceilings, filepath.Dir(folder)) {
			break
		}
	}
	return ""
}

// An unusableRepository is the error for a repository that git does not accept.
type unusableRepository struct {
	entry string // .git, or GIT_DIR
	err   error
}

func (e unusableRepository) Error() string {
	return fmt.Sprintf("cannot use the git repository %q: %v", e.entry, e.err)
}

func (e unusableRepository) Unwrap() error { return e.err }
