package gitrepo

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
)

// checkTrusted returns an error if git would take a folder, or one above it, for a bare
// repository by its content alone. Such a folder can be among the files of a commit, whose author
// then chooses the configuration that git obeys, and with it programs. What git finds by an entry
// .git is trusted: git checks out no such entry, so the one who made the clone made it. A registered
// worktree, a submodule and a repository outside the work tree have one, too.
//
// From version 2.38 on, git does the same with safe.bareRepository=explicit.
func checkTrusted(folder string) error {
	folders, err := upwards(folder)
	if err != nil {
		return err
	}
	for folder := range folders {
		entry := filepath.Join(folder, ".git")
		if isFile(entry) || isRepository(entry) {
			return nil
		}
		if isRepository(folder) {
			return untrustedFolder(folder)
		}
	}
	return nil // git finds none either
}

// upwards returns a folder without its links, and then those above it.
func upwards(folder string) (iter.Seq[string], error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	if folder, err = filepath.EvalSymlinks(folder); err != nil {
		return nil, err
	}
	return func(yield func(string) bool) {
		for next := folder; yield(next) && filepath.Dir(next) != next; {
			next = filepath.Dir(next)
		}
	}, nil
}

// isRepository reports whether a folder has what git looks for in a repository. git also
// requires that the content is valid.
func isRepository(folder string) bool {
	has := func(name string) bool {
		_, err := os.Lstat(filepath.Join(folder, name))
		return err == nil
	}
	hasObjects := has("objects") || os.Getenv("GIT_OBJECT_DIRECTORY") != ""
	return has("HEAD") && (has("commondir") || has("refs") && hasObjects)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// An untrustedFolder is the error for a folder that only its content makes a repository.
type untrustedFolder string

func (e untrustedFolder) Error() string {
	return fmt.Sprintf("git is not run in %q: it looks like a bare repository, and a pull request can contain such a "+
		"folder (run ledgerd in the root of the clone, or set GIT_DIR to the folder if you trust it)", string(e))
}

// trustCommand is the command that git advises for a repository of another user. The folder follows,
// quoted for a shell.
const trustCommand = "git config --global --add safe.directory "

// A foreignRepository is the error for a repository that belongs to another user. It is the folder, as
// git quotes it.
type foreignRepository string

// foreign returns the error for what git printed, if it refuses a repository of another user.
func foreign(stderr string) (foreignRepository, bool) {
	_, folder, found := strings.Cut(stderr, trustCommand)
	folder, _, _ = strings.Cut(folder, "\n")
	return foreignRepository(folder), found
}

func (e foreignRepository) Error() string {
	return fmt.Sprintf("git refuses the repository %s: it belongs to another user (if you trust it, run '%s%[1]s')",
		string(e), trustCommand)
}
