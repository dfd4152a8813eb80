// Package workfile reads .ledgerd.yaml, in which a git repository says which repo of
// which ledger it is.
package workfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ledgerd/ledgerd/internal/gitrepo"
)

// Name is the name of the file.
const Name = ".ledgerd.yaml"

const maxBytes = 64 << 10

// A File is the content of the file. Anyone who can change the repository can change it, so
// nothing in it may choose a server or a token that the user has not chosen.
type File struct {
	// Repo is ORG/REPO or REPO.
	Repo string `yaml:"repo,omitempty"`
	// Server is the URL of the ledger. It only selects among the servers that the user
	// has logged in to.
	Server string `yaml:"server,omitempty"`
}

// Find reads the file in the folder or in a folder above it, up to the root of its git
// work tree. Outside of a work tree and without the file, it returns an empty File. It returns an
// error if git refuses the work tree, but the file may be there.
func Find(ctx context.Context, folder string) (File, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return File{}, fmt.Errorf("find %s: %w", Name, err)
	}
	git := gitrepo.Repo{Dir: folder}
	root := git.Root(ctx)
	if root == "" {
		return File{}, checkUnread(ctx, git)
	}
	if root, err = filepath.EvalSymlinks(filepath.FromSlash(root)); err != nil {
		return File{}, fmt.Errorf("find %s: %w", Name, err)
	}
	if folder, err = filepath.EvalSymlinks(folder); err != nil {
		return File{}, fmt.Errorf("find %s: %w", Name, err)
	}

	for {
		f, err := read(filepath.Join(folder, Name))
		if !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
		parent := filepath.Dir(folder)
		if folder == root || parent == folder {
			return File{}, nil
		}
		folder = parent
	}
}

// checkUnread returns an error if git refuses a work tree that may have the file. It does not read
// it, since the one who wrote it is not trusted.
func checkUnread(ctx context.Context, git gitrepo.Repo) error {
	_, refused := git.Exists(ctx)
	if refused == nil {
		return nil
	}
	for folder := git.Dir; ; folder = filepath.Dir(folder) {
		if _, err := os.Lstat(filepath.Join(folder, Name)); err == nil {
			return fmt.Errorf("%s is not read: %w", Name, refused)
		}
		if folder == filepath.Dir(folder) {
			return nil
		}
	}
}

// read reads a file. It follows no link, since the content of another file must not show
// up in an error.
func read(path string) (File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return File{}, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxBytes {
		return File{}, fmt.Errorf("%s must be a regular file of at most %d KiB", path, maxBytes>>10)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return File{}, err
	}

	var f File
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return File{}, fmt.Errorf("%s is not valid (it may have repo and server): %s", path, oneLine(err))
	}
	return f, nil
}

// oneLine returns the error of the decoder as one line, without names of types.
func oneLine(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	return strings.ReplaceAll(strings.TrimPrefix(text, "yaml: unmarshal errors: "), " in type workfile.File", "")
}
