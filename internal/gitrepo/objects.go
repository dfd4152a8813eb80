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

// An objectStore is the objects of a repository, seen through an empty one of ours
// in a temporary folder. What git says of them there is the same in every clone
// and on every machine: configuration, attributes, .gitmodules and grafts have
// no say in it.
type objectStore struct {
	Repo
	folder  string // of the objects
	others  string // GIT_ALTERNATE_OBJECT_DIRECTORIES, where the environment has one
	shallow bool   // commits may lack their parents
	sha256  bool
}

// objects returns the objects of the repository. They want to be closed.
func (g Repo) objects(ctx context.Context) (*objectStore, error) {
	out, err := g.Read(ctx, "rev-parse", "--is-shallow-repository", "--show-object-format",
		"--git-path", "objects", "--git-path", "shallow")
	if err != nil {
		return nil, err
	}
	answers := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(answers) != 4 {
		return nil, fmt.Errorf("git rev-parse answered %q where 4 lines were asked for", out)
	}
	o := &objectStore{shallow: answers[0] == "true", sha256: answers[1] == "sha256"}
	if o.folder, err = g.absolute(answers[2]); err != nil {
		return nil, err
	}
	if !g.Isolated {
		o.others = os.Getenv(alternates)
	}
	shallow, err := g.absolute(answers[3])
	if err != nil {
		return nil, err
	}
	if err := o.make(shallow); err != nil {
		return nil, err
	}
	return o, nil
}

const alternates = "GIT_ALTERNATE_OBJECT_DIRECTORIES"

func (g Repo) absolute(path string) (string, error) {
	if filepath.IsAbs(path) {
		return path, nil
	}
	return filepath.Abs(filepath.Join(g.Dir, path))
}

// make makes the empty repository. Commits whose parents the clone lacks have
// none in it either.
func (o *objectStore) make(shallow string) error {
	dir, err := os.MkdirTemp("", "ledgerd-git-*")
	if err != nil {
		return err
	}
	o.Repo = Repo{Dir: dir, Isolated: true}
	if err := o.fill(shallow); err != nil {
		return errors.Join(err, o.close())
	}
	o.variables = []string{
		"GIT_DIR=" + dir,
		"HOME=" + dir, "XDG_CONFIG_HOME=" + dir, // of the user's attributes, and of what old versions of git read
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_OBJECT_DIRECTORY=" + o.folder, alternates + "=" + o.others,
	}
	return nil
}

func (o *objectStore) fill(shallow string) error {
	for _, name := range []string{"objects", "refs"} {
		if err := os.Mkdir(filepath.Join(o.Dir, name), 0o700); err != nil {
			return err
		}
	}
	// The limit is the default of git 2.34 and later.
	config := "[core]\n\trepositoryFormatVersion = 1\n\tbare = true\n[diff]\n\trenameLimit = 1000\n"
	if o.sha256 {
		config += "[extensions]\n\tobjectFormat = sha256\n"
	}
	files := map[string]string{"HEAD": "ref: refs/heads/none\n", "config": config}
	if o.shallow {
		content, err := os.ReadFile(shallow)
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

// writable returns a view of the objects in which git can make more of them,
// which end with the temporary folder.
func (o *objectStore) writable() Repo {
	folder := o.folder
	if strings.ContainsAny(folder, "\"\n"+string(os.PathListSeparator)) {
		folder = strconv.Quote(folder)
	}
	if o.others != "" {
		folder += string(os.PathListSeparator) + o.others
	}
	g := o.Repo
	g.variables = append(g.variables[:len(g.variables):len(g.variables)],
		"GIT_OBJECT_DIRECTORY="+filepath.Join(o.Dir, "objects"), alternates+"="+folder)
	return g
}

// emptyTree returns the id of the tree without entries, which depends on the
// repository's hash function.
func (o *objectStore) emptyTree() string {
	if o.sha256 {
		return "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
	}
	return "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
}

// present returns those of the objects of a type that are here.
func (o *objectStore) present(ctx context.Context, kind string, ids []string) (map[string]bool, error) {
	command := o.command(ctx, "cat-file", "--batch-check=%(objecttype) %(objectname)", "--buffer")
	command.Stdin = strings.NewReader(strings.Join(ids, "\n") + "\n")
	var stdout strings.Builder
	command.Stdout = &stdout
	if err := command.Run(); err != nil {
		return nil, failure(command, "cat-file", err)
	}
	present := make(map[string]bool, len(ids))
	for line := range strings.Lines(stdout.String()) {
		if id, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), kind+" "); ok {
			present[id] = true
		}
	}
	return present, nil
}
