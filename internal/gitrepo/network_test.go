package gitrepo

import (
	"encoding/base64"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/gitrepo/gitrepotest"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

// newGitServer serves a repository over HTTP to those with a login, USER:PASSWORD, as forges do.
// It returns the repository's URL.
func newGitServer(t *testing.T, h hostedRepo, login string) string {
	t.Helper()
	t.Setenv("NO_PROXY", "127.0.0.1")
	backend := filepath.Join(h.Git("--exec-path"), "git-http-backend")
	if runtime.GOOS == "windows" {
		backend += ".exe"
	}
	if _, err := os.Stat(backend); err != nil {
		t.Skipf("needs git http-backend: %v", err)
	}
	h.Git("config", "uploadpack.allowFilter", "true")

	git := &cgi.Handler{Path: backend, Root: "/acme/api.git",
		Env: []string{"GIT_PROJECT_ROOT=" + filepath.Join(h.Forest.Dir, ".git"), "GIT_HTTP_EXPORT_ALL=1"}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user+":"+password != login {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "log in", http.StatusUnauthorized)
			return
		}
		git.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/acme/api.git"
}

const (
	githubLogin = "x-access-token:ghs_secret"
	gitlabLogin = "gitlab-ci-token:glcbt-secret"
)

// A jobClone is an empty clone of a CI job, with the remote origin.
type jobClone struct {
	Repo
	url string // of origin
	tmp string // a folder of the runner
}

func (j jobClone) config(t *testing.T, args ...string) {
	t.Helper()
	mustGit(t, j.Repo, "", append([]string{"config"}, args...)...)
}

// writeGitHubHeader writes the credentials of actions/checkout to a file of settings.
func (j jobClone) writeGitHubHeader(t *testing.T, file string) {
	t.Helper()
	j.config(t, "--file", file, "http."+strings.TrimSuffix(j.url, "acme/api.git")+".extraheader",
		"AUTHORIZATION: basic "+base64.StdEncoding.EncodeToString([]byte(githubLogin)))
}

// writeV6 writes the settings of actions/checkout v6 for a git folder: the credentials are in a file
// of RUNNER_TEMP. The files of container actions do not exist for others.
func (j jobClone) writeV6(t *testing.T, gitDir string) {
	t.Helper()
	credentials := filepath.Join(j.tmp, "git-credentials-f1cf2e35-6b8b-4a35-9d3e-0d1d5b1b7c4b.config")
	j.writeGitHubHeader(t, credentials)
	for pattern, file := range map[string]string{
		gitDir: credentials, gitDir + "/worktrees/*": credentials,
		"/github/workspace/.git": "/github/runner_temp/git-credentials-f1cf2e35.config",
	} {
		j.config(t, "includeIf.gitdir:"+filepath.ToSlash(pattern)+".path", file)
	}
}

// writeGitLab writes the settings that GitLab Runner writes for every job since 18.6.
func (j jobClone) writeGitLab(t *testing.T) (file string) {
	t.Helper()
	file = filepath.Join(j.tmp, ".gitlab-runner.ext.conf")
	gitrepotest.WriteFile(t, file, "")
	for key, value := range map[string]string{"init.defaultBranch": "none", "fetch.recurseSubmodules": "false",
		"credential.interactive": "never", "gc.autoDetach": "false", "include.path": file} {
		j.config(t, key, value)
	}
	return file
}

// writeGitLabHelper writes the settings of the runner's feature flag FF_GIT_URLS_WITHOUT_TOKENS.
func (j jobClone) writeGitLabHelper(t *testing.T, file string) {
	t.Helper()
	section := "credential." + strings.TrimSuffix(j.url, "/acme/api.git")
	j.config(t, "--file", file, "--replace-all", section+".helper", "")
	j.config(t, "--file", file, "--add", section+".helper",
		`!f(){ if [ "$1" = "get" ] ; then echo "password=${CI_JOB_TOKEN}" ; fi ; } ; f`)
	j.config(t, "--file", file, section+".username", "gitlab-ci-token")
	t.Setenv("CI_JOB_TOKEN", "glcbt-secret")
}

// The history that a job needs is fetched with the credentials that its runner has left.
func TestCredentialsOfJobs(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("helpers need a shell")
	}
	h := newHostedRepo(t, 3)
	old := h.Git("rev-parse", "main~1:later.txt") // a file that only partial clones lack afterwards
	github, gitlab := newGitServer(t, h, githubLogin), newGitServer(t, h, gitlabLogin)
	for name, layout := range map[string]struct {
		url   string
		write func(t *testing.T, j jobClone) Repo // returns the folder of the job
		fetch []string
	}{
		// src/git-auth-helper.ts of v4.2 and v5.0
		"actions/checkout v4 and v5": {url: github, write: func(t *testing.T, j jobClone) Repo {
			j.config(t, "gc.auto", "0")
			j.writeGitHubHeader(t, filepath.Join(j.Dir, ".git", "config"))
			return j.Repo
		}},
		// src/git-source-provider.ts of v4.2: sparse-checkout implies the filter
		"actions/checkout v4, sparse": {url: github, fetch: []string{"--filter=blob:none"},
			write: func(t *testing.T, j jobClone) Repo {
				j.writeGitHubHeader(t, filepath.Join(j.Dir, ".git", "config"))
				return j.Repo
			}},
		// src/git-auth-helper.ts of v6.0
		"actions/checkout v6": {url: github, write: func(t *testing.T, j jobClone) Repo {
			j.writeV6(t, filepath.Join(j.Dir, ".git"))
			return j.Repo
		}},
		"actions/checkout v6, in a worktree": {url: github, write: func(t *testing.T, j jobClone) Repo {
			j.writeV6(t, filepath.Join(j.Dir, ".git"))
			tree := mustGit(t, j.Repo, "", "mktree")
			empty := mustGit(t, j.Repo, "", "commit-tree", tree, "-m", "empty")
			mustGit(t, j.Repo, "", "worktree", "add", "--quiet", "--detach", filepath.Join(j.tmp, "worktree"), empty)
			return Repo{Dir: filepath.Join(j.tmp, "worktree")}
		}},
		"actions/checkout v6, in a submodule": {url: github, write: func(t *testing.T, j jobClone) Repo {
			gitDir := filepath.Join(j.tmp, ".git", "modules", "api")
			gitrepotest.WriteFile(t, filepath.Join(filepath.Dir(gitDir), "other", "HEAD"), "")
			mustGit(t, j.Repo, "", "init", "--quiet", "--separate-git-dir", gitDir)
			j.writeV6(t, gitDir)
			return j.Repo
		}},
		// with the input ssh-key, in v4 to v6
		"actions/checkout with a key": {url: "git@127.0.0.1:" + filepath.Join(h.Forest.Dir, ".git"),
			write: func(t *testing.T, j jobClone) Repo {
				t.Setenv("RUNNER_TEMP", j.tmp)
				ssh := filepath.Join(j.tmp, "ssh")
				gitrepotest.WriteFile(t, ssh, "#!/bin/sh\n[ \"$1 $2\" = \"-i $RUNNER_TEMP/key\" ] || exit 1\n"+
					"for command; do :; done\neval \"$command\"\n")
				must.OK(t, os.Chmod(ssh, 0o755))
				j.config(t, "core.sshCommand", `"`+ssh+`" -i "$RUNNER_TEMP/key" -o StrictHostKeyChecking=yes`)
				return j.Repo
			}},
		// shells/abstract.go before 18.6
		"GitLab Runner, the token in the URL": {url: strings.Replace(gitlab, "//", "//"+gitlabLogin+"@", 1),
			write: func(_ *testing.T, j jobClone) Repo { return j.Repo }},
		// shells/abstract.go of 18.6
		"GitLab Runner 18.6": {url: gitlab, write: func(t *testing.T, j jobClone) Repo {
			file := j.writeGitLab(t)
			j.config(t, "--file", file, "url."+strings.Replace(j.url, "//", "//"+gitlabLogin+"@", 1)+".insteadOf", j.url)
			return j.Repo
		}},
		"GitLab Runner 18.6, URLs without tokens": {url: gitlab, write: func(t *testing.T, j jobClone) Repo {
			j.writeGitLabHelper(t, j.writeGitLab(t))
			return j.Repo
		}},
		// shells/abstract.go of 19.4, with GIT_STRATEGY none: only the global settings have it
		"GitLab Runner 19.4, URLs without tokens": {url: gitlab, write: func(t *testing.T, j jobClone) Repo {
			seed := filepath.Join(j.tmp, ".glr.gconf")
			j.writeGitLabHelper(t, filepath.Join(j.tmp, ".gitlab-runner.ext.conf"))
			j.config(t, "--file", seed, "--add", "include.path", filepath.Join(j.tmp, ".gitlab-runner.ext.conf"))
			t.Setenv("GIT_CONFIG_GLOBAL", seed)
			return j.Repo
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if !slices.Contains([]string{"actions/checkout v4, sparse", "actions/checkout v6", "GitLab Runner 18.6"}, name) {
				testenv.From(t, testenv.Push, "one of many layouts")
			}
			j := jobClone{Repo: h.ciClone(), url: layout.url, tmp: t.TempDir()}
			mustGit(t, j.Repo, "", "remote", "set-url", "origin", j.url)
			g := layout.write(t, j)
			mustGit(t, g, "", append(append([]string{"fetch", "--quiet", "--no-tags", "--depth=1"}, layout.fetch...), "origin",
				"+refs/pull/1/merge:refs/remotes/pull/1/merge")...) // by the runner

			c, err := g.ReadCommit(t.Context(), Query{Rev: h.head, BaseBranch: "main", Fetch: true})
			if err != nil || c.ChangesErr != nil || !slices.Equal(outline(c.Changes), []string{"A one.txt", "A two.txt"}) {
				t.Errorf("changes %q: %v, %v", outline(c.Changes), err, c.ChangesErr)
			}
			if tip := mustGit(t, g, "", "rev-parse", "refs/remotes/origin/main"); tip != h.tip {
				t.Errorf("origin/main is %.12s, want %.12s", tip, h.tip)
			}
			missing := mustGit(t, g, "", "rev-list", "--objects", "--missing=print", h.tip)
			if strings.Contains(missing, "?"+old) != (layout.fetch != nil) {
				t.Errorf("missing afterwards: %q", missing)
			}
			if remotes := mustGit(t, g, "", "remote"); remotes != "origin" {
				t.Errorf("remotes %q", remotes)
			}
		})
	}

	anonymous := h.ciClone()
	mustGit(t, anonymous, "", "remote", "set-url", "origin", github)
	if err := anonymous.FetchCommit(t.Context(), h.merge); err == nil {
		t.Error("the server needs no credentials")
	}
}

// Every command gets the settings that the clone cannot change, next to those of the environment.
func TestSettingsOfCommands(t *testing.T) {
	h := newHostedRepo(t, 1)
	clone := h.ciClone()
	mustGit(t, clone, "", "config", "safe.bareRepository", "all")
	mustGit(t, clone, "", "config", "core.hooksPath", "hooks")
	t.Setenv("GIT_CONFIG_COUNT", "2")
	t.Setenv("GIT_CONFIG_KEY_0", "safe.bareRepository")
	t.Setenv("GIT_CONFIG_VALUE_0", "all")
	t.Setenv("GIT_CONFIG_KEY_1", "user.name")
	t.Setenv("GIT_CONFIG_VALUE_1", "Ada")
	for key, want := range map[string]string{"safe.bareRepository": "explicit", "core.fsmonitor": "false",
		"core.hooksPath": os.DevNull, "user.name": "Ada"} {
		read, err := clone.line(t.Context(), "config", "--get", key)
		connected, networkErr := clone.network(t.Context(), "config", "--get", key)
		if err != nil || networkErr != nil || read != want || strings.TrimSpace(connected) != want {
			t.Errorf("%s is %q and %q (%v, %v), want %q", key, read, connected, err, networkErr, want)
		}
	}
}
