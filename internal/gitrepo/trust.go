package gitrepo

import (
	"fmt"
	"os"
	"path/filepath"
)

// checkTrusted returns an error if git would take a folder, or one above it, for a bare
// repository by its content alone. Such a folder can be among the files of a commit, whose author
// then chooses the configuration that git obeys, and with it programs. What git finds by an entry
// .git is trusted: git checks out no such entry, so the one who made the clone made it. A registered
// worktree, a submodule and a repository outside the work tree have one, too.
//
// From version 2.38 on, git does the same with safe.bareRepository=explicit. The search is that of
// git, from the folder without its links upwards.
func checkTrusted(folder string) error {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	if folder, err = filepath.EvalSymlinks(folder); err != nil {
		return err
	}

	for {
		entry := filepath.Join(folder, ".git")
		if isFile(entry) || isRepository(entry) {
			return nil
		}
		if isRepository(folder) {
			return untrustedFolder(folder)
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return nil // git finds none either
		}
		folder = parent
	}
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
