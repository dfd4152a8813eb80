package start

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/contexts"
	"github.com/ledgerd/ledgerd/cmd/internal/signing"
	"github.com/ledgerd/ledgerd/cmd/internal/workfile"
	"github.com/ledgerd/ledgerd/internal/atomicfile"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// A key is a key pair to create.
type key struct {
	name  string // of its files, without extension
	dn    identity.DN
	email string
	may   identity.Predicates
}

// keys returns the keys for CI and for the person, and that of the mainline if the CI
// has a job for it. None can attest what another does, so that one stolen key does not
// take a commit through.
func (s *setup) keys(ctx context.Context) []key {
	name := s.git.Config(ctx, "user.name")
	if name == "" {
		if u, err := user.Current(); err == nil {
			name = u.Username
		}
	}
	if name == "" {
		name = "me"
	}
	keys := []key{
		{folder + "/ci", identity.DN{CN: "ci", OU: "build", O: s.org}, "",
			identity.Predicates{"test:*", "build:*", "lint:*", "scan:*", "sbom:*", "coverage:*"}},
		{folder + "/me", identity.DN{CN: name, OU: "dev", O: s.org}, s.git.Config(ctx, "user.email"),
			identity.Predicates{"review:*", "deploy:*"}},
	}
	if s.claims() {
		keys = append(keys, key{folder + "/mainline", identity.DN{CN: "mainline", OU: "merge", O: s.org}, "",
			identity.Predicates{"merge:*", "changes:*"}})
	}
	return keys
}

// createFolder creates the folder, and has git ignore it in this clone. It refuses a
// folder that came with the repository: others would have its keys.
func (s *setup) createFolder(ctx context.Context, _ *cli.Connection) error {
	tracked, err := s.git.IsTracked(ctx, folder)
	if err != nil {
		return err
	}
	if tracked {
		return fmt.Errorf("git tracks files in %s, so its keys are not secret: remove them from the repository first", folder)
	}
	err = os.Mkdir(s.path(folder), 0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(s.path(folder))
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", s.path(folder))
	}
	return s.exclude(ctx)
}

// exclude adds the folder to what git ignores in this clone.
func (s *setup) exclude(ctx context.Context) error {
	file, err := s.git.ExcludeFile(ctx)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	const line = "/" + folder + "/"
	for existing := range strings.Lines(string(text)) {
		if strings.TrimSpace(existing) == line {
			return nil
		}
	}

	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return err
	}
	f, err := atomicfile.Create(file, 0o644)
	if err != nil {
		return err
	}
	return f.Write(append(text, line+"\n"...))
}

// createKey creates a key pair, or checks the existing one.
func (s *setup) createKey(_ context.Context, k key) error {
	keyFile := s.path(k.name + ".key")
	info, err := os.Lstat(keyFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		pair, err := signing.NewKeyPair(k.dn, k.email, time.Now(), 3650)
		if err != nil {
			return err
		}
		if err := pair.Write(s.path(k.name), false); err != nil {
			return err
		}
		s.add("key", k.name+".key", true, k.dn.String())
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows":
		return fmt.Errorf("other users have access to %s: create another with 'ledgerd keygen', or run 'chmod 600' if "+
			"nobody can have read it", keyFile)
	}

	if _, err := signing.Load(keyFile, s.path(k.name+".crt"), nil); err != nil {
		return err
	}
	s.add("key", k.name+".key", false, "")
	return nil
}

// createWorkFile writes .ledgerd.yaml.
func (s *setup) createWorkFile(context.Context, *cli.Connection) error {
	f := workfile.File{Repo: s.org + "/" + s.repo}
	if server, err := contexts.Canonical(s.server); err == nil {
		f.Server = server
	}
	text, err := terminal.YAML(f)
	if err != nil {
		return err
	}
	return s.create("file", workfile.Name, text)
}
