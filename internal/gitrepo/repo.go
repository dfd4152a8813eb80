// Package gitrepo reads commits with git, in the form in which the ledger records
// them. Of the content of files it returns only hashes and hunk headings. Except
// for tests, no other package runs git.
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

// A Repo is a git repository, accessed through the installed git command.
type Repo struct {
	// Dir is a folder of the work tree, or the repository itself.
	Dir string
	// Isolated reports whether git ignores the system and user configuration, as
	// in repositories that ledgerd creates.
	Isolated bool
	// variables are additional environment variables of its git commands.
	variables []string
	// maxOutput limits in bytes what Read takes from a git command. It is 0 without a limit.
	maxOutput int
}

// Read runs a read-only git command and returns its standard output.
func (g Repo) Read(ctx context.Context, args ...string) (string, error) {
	command := g.command(ctx, args...)
	stdout := output{max: g.maxOutput}
	command.Stdout = &stdout
	if err := command.Run(); err != nil {
		if stdout.isTooLarge {
			return "", fmt.Errorf("git %s printed more than %d bytes", args[0], g.maxOutput)
		}
		err = failure(command, args[0], err)
		if e, ok := errors.AsType[*commandError](err); ok {
			if refused, ok := foreign(e.stderr); ok {
				return "", refused
			}
		}
		return "", err
	}
	return stdout.String(), nil
}

// An output collects what a command prints, and ends the command if that is too much.
type output struct {
	strings.Builder
	max        int // in bytes, or 0 without a limit
	isTooLarge bool
}

// Write appends b.
func (o *output) Write(b []byte) (int, error) {
	if o.max > 0 && o.Len()+len(b) > o.max {
		o.isTooLarge = true
		return 0, errors.New("the output is too large")
	}
	return o.Builder.Write(b)
}

// command returns a read-only git command, not yet started. It connects to nothing, not even
// to fetch missing objects of a partial clone.
func (g Repo) command(ctx context.Context, args ...string) *exec.Cmd {
	return g.newCommand(ctx, "none", args)
}

// newCommand returns a git command, not yet started, that may use the given transports. It
// buffers standard error for failure. All commands of git come from here: they run no hooks and no
// file system monitor of the clone, and are not started in a folder that checkTrusted refuses.
func (g Repo) newCommand(ctx context.Context, transports string, args []string) *exec.Cmd {
	options := []string{"-C", g.Dir}
	for _, option := range []string{
		"safe.bareRepository=explicit", // known since git 2.38; see checkTrusted
		"core.fsmonitor=false",
		"core.hooksPath=" + os.DevNull,
		"protocol.allow=never",
		"gc.auto=0",
		"maintenance.auto=false",
		"advice.graftFileDeprecated=false",
	} {
		options = append(options, "-c", option)
	}

	command := exec.CommandContext(ctx, "git", append(options, args...)...)
	command.Env = append(g.Environ(),
		"GIT_NO_LAZY_FETCH=1",
		"GIT_ALLOW_PROTOCOL="+transports, // takes precedence over protocol.NAME.allow
		"GIT_TERMINAL_PROMPT=0",
		"GIT_OPTIONAL_LOCKS=0",
		// Read the objects themselves, not the clone's replacements for them.
		"GIT_NO_REPLACE_OBJECTS=1",
		"GIT_GRAFT_FILE="+os.DevNull,
		"LC_ALL=C")
	command.Stderr = new(bytes.Buffer)

	if err := g.checkTrusted(); err != nil {
		command.Err = err // is returned when it is started
	}
	return command
}

// checkTrusted returns an error if git must not be run in g.Dir: git would use a folder as the
// repository that can be among the files of a commit. With GIT_DIR, git searches for nothing.
func (g Repo) checkTrusted() error {
	if g.getenv("GIT_DIR") != "" {
		return nil
	}
	return checkTrusted(g.Dir)
}

// failure returns the error of a command created by g.newCommand.
func failure(command *exec.Cmd, name string, err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("git not found in PATH: install git")
	}
	if untrusted, ok := errors.AsType[untrustedFolder](err); ok {
		return untrusted
	}
	stderr, _ := command.Stderr.(*bytes.Buffer)
	return &commandError{name, strings.TrimSpace(stderr.String()), err}
}

// Environ returns the environment of the git commands on the repository.
func (g Repo) Environ() []string {
	if !g.Isolated {
		return append(os.Environ(), g.variables...)
	}
	var environ []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "GIT_") {
			environ = append(environ, variable)
		}
	}
	environ = append(environ, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)
	return append(environ, g.variables...)
}

// getenv returns a variable of the environment of the git commands.
func (g Repo) getenv(name string) (value string) {
	for _, variable := range g.Environ() {
		if v, ok := strings.CutPrefix(variable, name+"="); ok {
			value = v // the last one counts
		}
	}
	return value
}

// A commandError is the error of a git command that ran and failed.
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

// line runs git and returns the single line that it prints. If git exits with
// status 1, which means that it has no result, the line is empty.
func (g Repo) line(ctx context.Context, args ...string) (string, error) {
	out, err := g.Read(ctx, args...)
	if e, ok := errors.AsType[*exec.ExitError](err); ok && e.ExitCode() == 1 {
		return "", nil
	}
	return strings.TrimSpace(out), err
}

// commit resolves a revision to a commit, and a tag to the commit that it names. The sha is empty if
// it does not exist. Another object is an otherObject.
func (g Repo) commit(ctx context.Context, rev string) (string, error) {
	if strings.HasPrefix(rev, "-") {
		return "", fmt.Errorf("%q is not a git revision", rev)
	}
	sha, err := g.line(ctx, "rev-parse", "--verify", "--quiet", rev+"^{commit}")
	if err != nil || sha != "" {
		return sha, err
	}
	if kind := g.kind(ctx, rev); kind != "" {
		return "", otherObject{rev, kind}
	}
	return "", nil
}

// kind returns the type of the object that a revision names, without its tags, or "".
func (g Repo) kind(ctx context.Context, rev string) string {
	id, err := g.line(ctx, "rev-parse", "--verify", "--quiet", rev)
	if err != nil || id == "" {
		return ""
	}
	kind, err := g.line(ctx, "cat-file", "-t", id+"^{}")
	if err != nil {
		return ""
	}
	return kind
}

// existingCommit is like commit, but returns an error if the commit does not exist.
func (g Repo) existingCommit(ctx context.Context, rev string) (string, error) {
	sha, err := g.commit(ctx, rev)
	if err == nil && sha == "" {
		err = missingCommit(rev)
	}
	return sha, err
}

// A missingCommit is the error for a revision that the repository does not have.
type missingCommit string

func (e missingCommit) Error() string {
	return fmt.Sprintf("commit %q not found in this git repository", string(e))
}

// An otherObject is the error for a revision that names a tree or a blob.
type otherObject struct{ rev, kind string }

func (e otherObject) Error() string { return fmt.Sprintf("%q is a %s, not a commit", e.rev, e.kind) }

// The ref prefixes of local branches and of the remote's.
const (
	localBranch  = "refs/heads/"
	remoteBranch = "refs/remotes/origin/"
)

// contains reports whether sha is tip or one of its ancestors.
func (g Repo) contains(ctx context.Context, tip, sha string) bool {
	if tip == "" {
		return false
	}
	_, err := g.Read(ctx, "merge-base", "--is-ancestor", sha, tip)
	return err == nil
}

// Options of git: commit graphs are only caches, which somebody may have written.
const (
	noGraph      = "-c"
	noGraphValue = "core.commitGraph=false"
)

// splitNull splits output that git has ended with NULs.
func splitNull(out string) []string {
	return strings.FieldsFunc(out, func(r rune) bool { return r == 0 })
}
