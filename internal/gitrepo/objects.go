package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// An objectStore gives access to the objects of a repository through an empty
// repository in a temporary folder. There, git's output does not depend on the
// configuration, attributes, .gitmodules or grafts of the clone or machine.
type objectStore struct {
	Repo
	folder     string // of the objects
	alternates string // GIT_ALTERNATE_OBJECT_DIRECTORIES of the environment, if set
	shallow    bool   // commits may lack their parents
	sha256     bool
}

// objects opens the objects of the repository. The caller must close them.
func (g Repo) objects(ctx context.Context) (*objectStore, error) {
	out, err := g.Read(ctx, "rev-parse", "--is-shallow-repository", "--show-object-format",
		"--git-path", "objects", "--git-path", "shallow")
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != 4 {
		return nil, fmt.Errorf("git rev-parse printed %q, want 4 lines", out)
	}

	o := &objectStore{shallow: lines[0] == "true", sha256: lines[1] == "sha256"}
	if o.folder, err = g.absolute(lines[2]); err != nil {
		return nil, err
	}
	if !g.Isolated {
		o.alternates = os.Getenv(alternatesVariable)
	}
	shallowFile, err := g.absolute(lines[3])
	if err != nil {
		return nil, err
	}
	if err := o.create(shallowFile); err != nil {
		return nil, err
	}
	return o, nil
}

const alternatesVariable = "GIT_ALTERNATE_OBJECT_DIRECTORIES"

// gitPath returns the absolute path of a file of the repository.
func (g Repo) gitPath(ctx context.Context, name string) (string, error) {
	path, err := g.line(ctx, "rev-parse", "--git-path", name)
	if err != nil {
		return "", err
	}
	return g.absolute(path)
}

func (g Repo) absolute(path string) (string, error) {
	if filepath.IsAbs(path) {
		return path, nil
	}
	return filepath.Abs(filepath.Join(g.Dir, path))
}

// create creates the empty repository. It is as shallow as the clone whose shallow
// file is given.
func (o *objectStore) create(shallowFile string) error {
	dir, err := os.MkdirTemp("", "ledgerd-git-*")
	if err != nil {
		return err
	}
	o.Repo = Repo{Dir: dir, Isolated: true}
	if err := o.fill(shallowFile); err != nil {
		return errors.Join(err, o.close())
	}
	o.variables = []string{
		"GIT_DIR=" + dir,
		"HOME=" + dir, "XDG_CONFIG_HOME=" + dir, // hide user attributes, and configuration from old versions of git
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_OBJECT_DIRECTORY=" + o.folder, alternatesVariable + "=" + o.alternates,
	}
	return nil
}

// fill writes the files that git needs to accept the folder as a repository.
func (o *objectStore) fill(shallowFile string) error {
	for _, name := range []string{"objects", "refs"} {
		if err := os.Mkdir(filepath.Join(o.Dir, name), 0o700); err != nil {
			return err
		}
	}

	// The renameLimit is the default of git 2.34 and later. Commit graphs are only caches, which somebody may have
	// written.
	config := "[core]\n\trepositoryFormatVersion = 1\n\tbare = true\n\tcommitGraph = false\n" +
		"[diff]\n\trenameLimit = 1000\n"
	if o.sha256 {
		config += "[extensions]\n\tobjectFormat = sha256\n"
	}
	files := map[string]string{"HEAD": "ref: refs/heads/none\n", "config": config}
	if o.shallow {
		content, err := os.ReadFile(shallowFile)
		if err != nil {
			return err
		}
		files["shallow"] = string(content)
	}

	for name, content := range files {
		if err := os.WriteFile(filepath.Join(o.Dir, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (o *objectStore) close() error { return os.RemoveAll(o.Dir) }

// writable returns a repository with the same objects in which git can create more.
// They are stored in the temporary folder.
func (o *objectStore) writable() Repo {
	folder := o.folder
	if strings.ContainsAny(folder, "\"\n"+string(os.PathListSeparator)) {
		folder = strconv.Quote(folder)
	}
	if o.alternates != "" {
		folder += string(os.PathListSeparator) + o.alternates
	}
	g := o.Repo
	g.variables = append(g.variables[:len(g.variables):len(g.variables)],
		"GIT_OBJECT_DIRECTORY="+filepath.Join(o.Dir, "objects"), alternatesVariable+"="+folder)
	return g
}

// emptyTree returns the id of the empty tree under the repository's hash function.
func (o *objectStore) emptyTree() string {
	if o.sha256 {
		return "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
	}
	return "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
}

// present reports which of the objects the repository has with this type.
func (o *objectStore) present(ctx context.Context, kind string, ids []string) (map[string]bool, error) {
	sizes, err := o.sizes(ctx, kind, ids)
	present := make(map[string]bool, len(sizes))
	for id := range sizes {
		present[id] = true
	}
	return present, err
}

// sizes returns the sizes in bytes of those objects of a kind that the repository has.
func (o *objectStore) sizes(ctx context.Context, kind string, ids []string) (map[string]int, error) {
	command := o.command(ctx, "cat-file", "--batch-check=%(objecttype) %(objectname) %(objectsize)", "--buffer")
	command.Stdin = strings.NewReader(strings.Join(ids, "\n") + "\n")
	var stdout strings.Builder
	command.Stdout = &stdout
	if err := command.Run(); err != nil {
		return nil, failure(command, "cat-file", err)
	}
	sizes := make(map[string]int, len(ids))
	for line := range strings.Lines(stdout.String()) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[0] != kind {
			continue
		}
		size, err := strconv.Atoi(fields[2])
		if err != nil {
			return nil, fmt.Errorf("read the size of an object: %w", err)
		}
		sizes[fields[1]] = size
	}
	return sizes, nil
}
