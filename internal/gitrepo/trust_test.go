package gitrepo

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/gitrepo/gitrepotest"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// programs are small programs in a folder. Each leaves a file of its own name in the folder
// "ran", and fails.
type programs struct{ dir string }

func newPrograms(t *testing.T) programs {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	p := programs{t.TempDir()}
	must.OK(t, os.Mkdir(filepath.Join(p.dir, "ran"), 0o755))
	p.write(t, filepath.Join(p.dir, "git-remote-program"))
	t.Setenv("PATH", p.dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return p
}

func (p programs) write(t *testing.T, path string) {
	t.Helper()
	gitrepotest.WriteFile(t, path, "#!/bin/sh\ntouch '"+filepath.Join(p.dir, "ran", filepath.Base(path))+"'\nexit 1\n")
	must.OK(t, os.Chmod(path, 0o755))
}

// set sets settings of a repository to programs of the same names.
func (p programs) set(t *testing.T, g Repo, settings ...string) {
	t.Helper()
	for _, key := range settings {
		program := filepath.Join(p.dir, key)
		p.write(t, program)
		if strings.HasPrefix(key, "alias.") || strings.HasSuffix(key, ".update") || key == "credential.helper" {
			program = "!" + program
		}
		mustGit(t, g, "", "config", "--file", filepath.Join(g.Dir, "config"), key, program)
	}
}

// ran returns the names of the programs that ran.
func (p programs) ran(t *testing.T) []string {
	t.Helper()
	entries := must.Get(os.ReadDir(filepath.Join(p.dir, "ran")))(t)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// programSettings are settings that make git run a program.
func programSettings() []string {
	return []string{"remote.origin.uploadpack", "remote." + remoteName + ".uploadpack", "core.fsmonitor", "core.pager",
		"core.editor", "pager.log", "gpg.program",
		"core.alternateRefsCommand", "diff.external", "diff.x.command", "diff.x.textconv", "merge.x.driver",
		"filter.x.smudge", "filter.x.clean", "filter.x.process", "uploadpack.packObjectsHook", "alias.fetch",
		"alias.ls-remote", "submodule.x.update"}
}

// loginSettings are settings that make git run a program to connect to a remote or log in.
func loginSettings() []string {
	return []string{"core.sshCommand", "core.gitProxy", "core.askPass", "credential.helper"}
}

// newBare returns a folder that git takes for a bare repository. It configures programs for
// everything, and is a clone of the given folder.
func newBare(t *testing.T, p programs, origin string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "bare")
	gitrepotest.WriteFile(t, filepath.Join(folder, "HEAD"), "ref: refs/heads/main\n")
	gitrepotest.WriteFile(t, filepath.Join(folder, "objects", "keep"), "")
	gitrepotest.WriteFile(t, filepath.Join(folder, "refs", "keep"), "")
	gitrepotest.WriteFile(t, filepath.Join(folder, "config"), "[core]\n\trepositoryFormatVersion = 0\n\tbare = true\n"+
		"[remote \"origin\"]\n\turl = "+origin+"\n")
	p.set(t, Repo{Dir: folder}, append(programSettings(), loginSettings()...)...)
	return folder
}

// git is not run in a folder that can be among the files of a pull request, nor below one,
// however it names its parts. So its configuration has no effect.
func TestUntrustedFolders(t *testing.T) {
	h := newHostedRepo(t, 1)
	p := newPrograms(t)
	template := newBare(t, p, h.Forest.Dir)
	config := func(t *testing.T, folder, key, value string) {
		gitrepotest.Git(t, folder, "", "config", "--file", filepath.Join(folder, "config"), key, value)
	}
	replace := func(t *testing.T, path string, write func(string) error) {
		must.OK(t, errors.Join(os.RemoveAll(path), write(path)))
	}

	for name, prepare := range map[string]func(t *testing.T, bare string) (folder string){
		"a folder that looks like a bare repository": func(_ *testing.T, bare string) string { return bare },
		"a folder below it": func(t *testing.T, bare string) string {
			gitrepotest.WriteFile(t, filepath.Join(bare, "a", "b", "file"), "")
			return filepath.Join(bare, "a", "b")
		},
		"its objects": func(_ *testing.T, bare string) string { return filepath.Join(bare, "objects") },
		"a link to a folder below it": func(t *testing.T, bare string) string {
			link := filepath.Join(filepath.Dir(bare), "link")
			replace(t, link, func(path string) error { return os.Symlink(filepath.Join("bare", "objects"), path) })
			return link
		},
		"one that claims a work tree": func(t *testing.T, bare string) string {
			config(t, bare, "core.bare", "false")
			config(t, bare, "core.worktree", t.TempDir())
			return bare
		},
		"one whose HEAD is a link": func(t *testing.T, bare string) string {
			replace(t, filepath.Join(bare, "HEAD"), func(path string) error { return os.Symlink("refs/heads/main", path) })
			return bare
		},
		"one with its objects elsewhere": func(t *testing.T, bare string) string {
			folder := filepath.Join(filepath.Dir(bare), "outer")
			gitrepotest.WriteFile(t, filepath.Join(folder, "HEAD"), "ref: refs/heads/main\n")
			gitrepotest.WriteFile(t, filepath.Join(folder, "commondir"), "../bare\n")
			return folder
		},
		"one with an empty .git": func(t *testing.T, bare string) string {
			replace(t, filepath.Join(bare, ".git"), func(path string) error { return os.Mkdir(path, 0o755) })
			return bare
		},
	} {
		t.Run(name, func(t *testing.T) {
			clone := h.clone("--depth=1", "+refs/heads/feature:refs/remotes/origin/feature")
			bare := filepath.Join(clone.Dir, "sub", "folder", "bare")
			must.OK(t, os.CopyFS(bare, os.DirFS(template)))
			g := Repo{Dir: prepare(t, bare)}
			for what, err := range useAll(t, g, h) {
				if _, ok := errors.AsType[untrustedFolder](err); !ok {
					t.Errorf("%s: %v", what, err)
				}
			}
			if g.Root(t.Context()) != "" || g.RemoteURL(t.Context()) != "" || g.Knows(t.Context(), "HEAD") {
				t.Error("its configuration is read")
			}
			if names := p.ran(t); len(names) > 0 {
				t.Errorf("programs ran: %q", names)
			}

			// git itself refuses it too, if it is new enough.
			command := g.command(t.Context(), "rev-parse", "--git-dir")
			command.Err = nil
			err := failure(command, "rev-parse", command.Run())
			if version, _ := clone.line(t.Context(), "version"); canMerge(strings.TrimPrefix(version, "git version ")) &&
				!strings.Contains(err.Error(), "safe.bareRepository is 'explicit'") {
				t.Error(err)
			}
		})
	}
}

// useAll does everything that commands do with a repository, and returns the errors.
func useAll(t *testing.T, g Repo, h hostedRepo) map[string]error {
	_, read := g.ReadCommit(t.Context(), Query{Rev: h.head, BaseBranch: "main", Fetch: true})
	_, describe := g.Describe(t.Context(), h.head)
	_, _, head := g.Head(t.Context())
	_, tracked := g.IsTracked(t.Context(), "x")
	_, merge := g.CheckMerge(t.Context(), Merge{Kind: attestation.Merged, Commit: h.merge, Source: h.head})
	_, network := g.network(t.Context(), "ls-remote", remoteName)
	return map[string]error{"read a commit": read, "describe a commit": describe, "read HEAD": head, "list files": tracked,
		"check a merge": merge, "fetch a commit": g.FetchCommit(t.Context(), h.merge), "connect": network}
}

// git is run in clones that have an entry .git, also if the files of the work tree look like a
// repository, and outside of clones.
func TestTrustedFolders(t *testing.T) {
	f := newForest(t)
	f.Commit("sub/file", "x\n")
	elsewhere := t.TempDir()
	for _, name := range []string{"HEAD", "objects/keep", "refs/keep", "half/HEAD", "half/refs/keep"} {
		gitrepotest.WriteFile(t, filepath.Join(f.Forest.Dir, filepath.FromSlash(name)), "ref: refs/heads/main\n")
	}
	f.Git("worktree", "add", "--quiet", "--detach", filepath.Join(elsewhere, "linked"))
	f.Git("worktree", "add", "--quiet", "--detach", filepath.Join(f.Forest.Dir, "linked"))
	f.Git("init", "--quiet", "--separate-git-dir", filepath.Join(elsewhere, "separate.git"),
		filepath.Join(elsewhere, "separate"))
	f.Git("clone", "--quiet", "--bare", ".", filepath.Join(elsewhere, "bare.git"))
	mustGit(t, Repo{Dir: filepath.Join(elsewhere, "bare.git")}, "", "worktree", "add", "--quiet",
		filepath.Join(elsewhere, "of-bare"), "main")
	f.Git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", filepath.Join(elsewhere, "bare.git"),
		"module")

	for name, folder := range map[string]string{
		"a work tree whose files look like a repository": f.Forest.Dir,
		"a folder of a work tree":                        filepath.Join(f.Forest.Dir, "sub"),
		"a folder with a part of a repository":           filepath.Join(f.Forest.Dir, "half"),
		"a linked work tree":                             filepath.Join(elsewhere, "linked"),
		"a linked work tree inside another":              filepath.Join(f.Forest.Dir, "linked"),
		"a linked work tree of a bare repository":        filepath.Join(elsewhere, "of-bare"),
		"a submodule": filepath.Join(f.Forest.Dir, "module"),
		"a work tree with its git folder elsewhere": filepath.Join(elsewhere, "separate"),
	} {
		g := Repo{Dir: folder}
		if _, err := g.Read(t.Context(), "status", "--short"); err != nil || g.checkTrusted() != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (Repo{Dir: elsewhere}).checkTrusted(); err != nil {
		t.Error(err)
	}
	bare := Repo{Dir: filepath.Join(elsewhere, "bare.git")}
	if bare.checkTrusted() == nil {
		t.Error("a bare repository is trusted")
	}
	t.Setenv("GIT_DIR", bare.Dir)
	if _, err := bare.commit(t.Context(), "HEAD"); err != nil || bare.checkTrusted() != nil {
		t.Errorf("a bare repository that GIT_DIR names: %v", err)
	}
}

// In a clone that is trusted, only programs that connect to the remote or log in run.
func TestProgramsOfTheClone(t *testing.T) {
	h := newHostedRepo(t, 1)
	p := newPrograms(t)
	other := newForest(t)
	other.Commit("file", "of alternates\n")
	clone := h.clone("--depth=1", "+refs/pull/1/merge:refs/remotes/pull/1/merge")
	gitDir := Repo{Dir: filepath.Join(clone.Dir, ".git")}
	gitrepotest.WriteFile(t, filepath.Join(clone.Dir, ".gitattributes"), "* diff=x filter=x merge=x\n")
	gitrepotest.WriteFile(t, filepath.Join(gitDir.Dir, "objects", "info", "alternates"),
		filepath.Join(other.Forest.Dir, ".git", "objects")+"\n")
	for _, hook := range []string{"reference-transaction", "pre-auto-gc", "post-checkout"} {
		p.write(t, filepath.Join(gitDir.Dir, "hooks", hook))
	}
	for key, value := range map[string]string{"log.showSignature": "true", "gc.auto": "1", "protocol.allow": "always",
		"fetch.recurseSubmodules": "true", "remote.origin.vcs": "program",
		"remote." + remoteName + ".url": filepath.Join(h.Forest.Dir, "gone")} {
		mustGit(t, clone, "", "config", key, value)
	}
	p.set(t, gitDir, programSettings()...)
	for what, err := range useAll(t, clone, h) {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if names := p.ran(t); len(names) > 0 {
		t.Errorf("programs ran: %q", names)
	}

	for setting, url := range map[string]string{
		"core.sshCommand":   "ssh://git@127.0.0.1/x",
		"core.gitProxy":     "git://127.0.0.1/x",
		"core.askPass":      newGitServer(t, h, "x:y"),
		"credential.helper": newGitServer(t, h, "x:y"),
	} {
		clone := h.ciClone()
		mustGit(t, clone, "", "remote", "set-url", "origin", url)
		p.set(t, Repo{Dir: filepath.Join(clone.Dir, ".git")}, setting)
		if err := clone.FetchCommit(t.Context(), h.merge); err == nil {
			t.Errorf("%s: fetched without a password", setting)
		}
		if names := p.ran(t); !slices.Contains(names, setting) {
			t.Errorf("%s: programs ran: %q", setting, names)
		}
	}
}
