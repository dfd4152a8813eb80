// Package gitrepo runs git. It reads what the ledger records of a commit: of a file's
// content, only hashes and hunk headings.
package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// A Repo is a git repository, read by the machine's own git.
type Repo struct {
	// Dir is a folder of the work tree, or the repository itself.
	Dir string
	// Isolated reports that git ignores the configuration of the machine and its
	// user, as in repositories that ledgerd creates.
	Isolated bool
	// variables are what its git commands need in their environment in addition.
	variables []string
}

// Read runs a git command that only reads and returns what it prints.
func (g Repo) Read(ctx context.Context, args ...string) (string, error) {
	command := g.command(ctx, args...)
	var stdout strings.Builder
	command.Stdout = &stdout
	if err := command.Run(); err != nil {
		return "", failure(command, args[0], err)
	}
	return stdout.String(), nil
}

// command returns a git command that only reads, not yet started, whose standard
// error is kept for failure. The repository may be anybody's, so its
// configuration must not make git run anything: a file system monitor, or
// whatever fetches what a partial clone lacks.
func (g Repo) command(ctx context.Context, args ...string) *exec.Cmd {
	options := []string{"-C", g.Dir, "-c", "core.fsmonitor=false", "-c", "protocol.allow=never", "-c",
		"advice.graftFileDeprecated=false"}
	command := exec.CommandContext(ctx, "git", append(options, args...)...)
	command.Env = append(g.Environ(),
		"GIT_NO_LAZY_FETCH=1",
		"GIT_ALLOW_PROTOCOL=none", // which comes before protocol.NAME.allow
		"GIT_TERMINAL_PROMPT=0",
		"GIT_OPTIONAL_LOCKS=0",
		// What the hashes name, not what a clone puts in its place.
		"GIT_NO_REPLACE_OBJECTS=1",
		"GIT_GRAFT_FILE="+os.DevNull,
		"LC_ALL=C")
	command.Stderr = new(bytes.Buffer)
	return command
}

// failure says why a command of g.command failed.
func failure(command *exec.Cmd, name string, err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("git is not installed here: there is no git command in PATH")
	}
	stderr, _ := command.Stderr.(*bytes.Buffer)
	return &commandError{name, strings.TrimSpace(stderr.String()), err}
}

// Environ returns the environment of the git commands on the repository.
func (g Repo) Environ() []string {
	if !g.Isolated {
		return append(os.Environ(), g.variables...)
	}
	var kept []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "GIT_") {
			kept = append(kept, variable)
		}
	}
	kept = append(kept, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)
	return append(kept, g.variables...)
}

// Write runs a git command that changes the repository, as an example author.
func (g Repo) Write(ctx context.Context, args ...string) error {
	command := exec.CommandContext(ctx, "git", append([]string{"-C", g.Dir}, args...)...)
	command.Env = append(g.Environ(),
		"GIT_AUTHOR_NAME=Ada Example", "GIT_AUTHOR_EMAIL=ada@example.org",
		"GIT_COMMITTER_NAME=Ada Example", "GIT_COMMITTER_EMAIL=ada@example.org")
	if out, err := command.CombinedOutput(); err != nil {
		return &commandError{args[0], strings.TrimSpace(string(out)), err}
	}
	return nil
}

// A commandError is git's own refusal.
type commandError struct {
	command string
	stderr  string
	err     error
}

func (e *commandError) Error() string {
	if e.stderr == "" {
		return fmt.Sprintf("git %s: %v", e.command, e.err)
	}
	return fmt.Sprintf("git %s: %s", e.command, e.stderr)
}

func (e *commandError) Unwrap() error { return e.err }

// line runs git and returns the line that it prints. Where git has no answer,
// which is not an error, the line is empty.
func (g Repo) line(ctx context.Context, args ...string) (string, error) {
	out, err := g.Read(ctx, args...)
	if e, ok := errors.AsType[*exec.ExitError](err); ok && e.ExitCode() == 1 {
		return "", nil
	}
	return strings.TrimSpace(out), err
}

// commit returns the sha of the commit that rev names, empty where it names
// none.
func (g Repo) commit(ctx context.Context, rev string) (string, error) {
	if strings.HasPrefix(rev, "-") {
		return "", fmt.Errorf("%q is not a git revision", rev)
	}
	return g.line(ctx, "rev-parse", "--verify", "--quiet", rev+"^{commit}")
}

// mustCommit is commit where there has to be one.
func (g Repo) mustCommit(ctx context.Context, rev string) (string, error) {
	sha, err := g.commit(ctx, rev)
	if err == nil && sha == "" {
		err = fmt.Errorf("there is no commit %q in this git repository", rev)
	}
	return sha, err
}

// Where git keeps branches, one's own and the remote's.
const (
	localBranch  = "refs/heads/"
	remoteBranch = "refs/remotes/origin/"
)

// holds reports whether a commit is another one or one of its ancestors.
func (g Repo) holds(ctx context.Context, tip, sha string) bool {
	if tip == "" {
		return false
	}
	_, err := g.Read(ctx, "merge-base", "--is-ancestor", sha, tip)
	return err == nil
}
