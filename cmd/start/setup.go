package start

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/atomicfile"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
)

// folder has the keys and the token. git ignores it.
const folder = ".ledgerd"

// A setup is what init creates.
type setup struct {
	p    *cli.Program
	git  gitrepo.Repo // at the root of the work tree
	org  string
	repo string
	ci   string

	server string // URL, or empty for a database file
	remote gitrepo.Remote
	webURL string // of the repo, as far as the remote says it
	// databaseFlag is the flag for the next commands, if the user has named a database with it.
	databaseFlag string
	steps        []step
}

// A step is a thing that init created or found.
type step struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Created bool   `json:"created"`
	Note    string `json:"note,omitzero"`
}

func (s *setup) add(kind, name string, created bool, note string) {
	s.steps = append(s.steps, step{kind, name, created, note})
}

// path returns the path of a file of the work tree.
func (s *setup) path(name string) string { return filepath.Join(s.git.Dir, filepath.FromSlash(name)) }

// create writes a file of the work tree, unless it exists. No folder in its path may be a link: nothing is
// created through one.
func (s *setup) create(kind, name string, text []byte) error {
	root, err := os.OpenRoot(s.git.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := createFolders(root, name); err != nil {
		return err
	}

	err = writeNew(root, name, text, 0o644)
	switch {
	case err == nil:
		s.add(kind, name, true, "")
	case errors.Is(err, fs.ErrExist):
		note := "unchanged"
		if existing, err := root.ReadFile(name); err != nil || string(existing) != string(text) {
			note = "unchanged, and differs from what init writes"
		}
		s.add(kind, name, false, note)
	default:
		return err
	}
	return nil
}

// createFolders creates the folders of a file that do not exist, from the top.
func createFolders(root *os.Root, name string) error {
	for i, c := range name {
		if c != '/' {
			continue
		}
		err := root.Mkdir(name[:i], 0o777)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		info, err := root.Lstat(name[:i])
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fmt.Errorf("%s is in a folder that is a link or a file, %s (remove that)", name, name[:i])
		}
	}
	return nil
}

// writeNew creates a file, which must not exist, and syncs its content to disk.
func writeNew(root *os.Root, name string, text []byte, mode fs.FileMode) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, root.Remove(name))
	}
	return atomicfile.SyncFolder(filepath.Join(root.Name(), name))
}
