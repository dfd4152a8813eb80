package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

	e, ok := errors.AsType[*commandError](err)
	var otherFileSystem string
	if ok {
		otherFileSystem = mountPoint(e.stderr)
		e.stderr = firstLines(e.stderr)
	}
	entry := g.entry(otherFileSystem)
	if entry == "" {
		return false, nil
	}
	return false, unusableRepository{entry, err}
}

// mountPoint returns the folder on another file system at which git says that it has stopped, or "".
func mountPoint(stderr string) string {
	_, rest, _ := strings.Cut(stderr, "(or any parent up to mount point ")
	folder, _, _ := strings.Cut(rest, ")\nStopping at filesystem boundary")
	return folder
}

// entry returns the .git entry that makes g.Dir part of a repository, or GIT_DIR if it is set. It
// returns "" if there is neither. Like git, it looks in g.Dir and its parents, and stops at
// GIT_CEILING_DIRECTORIES and at mountPoint, unless that is "".
func (g Repo) entry(mountPoint string) string {
	if dir := g.getenv("GIT_DIR"); dir != "" {
		return dir
	}
	ceilings := filepath.SplitList(g.getenv("GIT_CEILING_DIRECTORIES"))
	for i, ceiling := range ceilings {
		if path, err := filepath.EvalSymlinks(ceiling); err == nil {
			ceilings[i] = path
		}
	}
	ceilings = append(ceilings, mountPoint)

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
