package cmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/ledgerd/ledgerd/ledger"
)

// A gitRepo is a git repository, read by the machine's own git.
type gitRepo struct {
	dir string
	// own is set for one that we made: nothing that the machine or its user
	// configures for git has a say in it.
	own bool
	// variables of the environment are what its git commands need beside.
	variables []string
}

// run runs a git command that only reads and returns what it prints.
func (g gitRepo) run(ctx context.Context, args ...string) (string, error) {
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
func (g gitRepo) command(ctx context.Context, args ...string) *exec.Cmd {
	options := []string{"-C", g.dir, "-c", "core.fsmonitor=false", "-c", "protocol.allow=never", "-c", "advice.graftFileDeprecated=false"}
	command := exec.CommandContext(ctx, "git", append(options, args...)...)
	command.Env = append(g.environment(),
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
	return &gitError{name, strings.TrimSpace(stderr.String()), err}
}

// environment returns the environment of the git commands on the repository.
func (g gitRepo) environment() []string {
	if !g.own {
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

// A gitError is git's own refusal.
type gitError struct {
	command string
	stderr  string
	err     error
}

func (e *gitError) Error() string {
	if e.stderr == "" {
		return fmt.Sprintf("git %s: %v", e.command, e.err)
	}
	return fmt.Sprintf("git %s: %s", e.command, e.stderr)
}

func (e *gitError) Unwrap() error { return e.err }

// line runs git and returns the line that it prints. Where git has no answer,
// which is not an error, the line is empty.
func (g gitRepo) line(ctx context.Context, args ...string) (string, error) {
	out, err := g.run(ctx, args...)
	if e, ok := errors.AsType[*exec.ExitError](err); ok && e.ExitCode() == 1 {
		return "", nil
	}
	return strings.TrimSpace(out), err
}

// commit returns the sha of the commit that rev names, empty where it names
// none.
func (g gitRepo) commit(ctx context.Context, rev string) (string, error) {
	if strings.HasPrefix(rev, "-") {
		return "", fmt.Errorf("%q is not a git revision", rev)
	}
	return g.line(ctx, "rev-parse", "--verify", "--quiet", rev+"^{commit}")
}

// mustCommit is commit where there has to be one.
func (g gitRepo) mustCommit(ctx context.Context, rev string) (string, error) {
	sha, err := g.commit(ctx, rev)
	if err == nil && sha == "" {
		err = fmt.Errorf("there is no commit %q in this git repository", rev)
	}
	return sha, err
}

// resolveCommit returns the sha that rev names: in a git work tree any
// revision, elsewhere a whole sha.
func resolveCommit(ctx context.Context, rev string) (string, error) {
	sha, err := gitRepo{dir: "."}.commit(ctx, rev)
	if sha != "" {
		return sha, nil
	}
	if ledger.IsCommit(rev) {
		return rev, nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot tell which commit %q is: %w (a whole sha needs no git)", rev, err)
	}
	return "", fmt.Errorf("there is no commit %q in this git repository", rev)
}

// findCommit is resolveCommit for reading: it also takes the beginning of a
// sha that only the ledger knows.
func findCommit(ctx context.Context, rev string) (string, error) {
	sha, err := resolveCommit(ctx, rev)
	if err != nil && ledger.IsCommitPrefix(rev) {
		return rev, nil
	}
	return sha, err
}

// branch returns the branch that rev stands on: itself where it names one, the
// current one where that holds it, else none.
func (g gitRepo) branch(ctx context.Context, rev, sha string) (string, error) {
	name, err := g.line(ctx, "rev-parse", "--symbolic-full-name", "--verify", "--quiet", rev)
	if err != nil {
		return "", err
	}
	if branch, ok := strings.CutPrefix(name, localBranch); ok {
		return branch, nil
	}
	if remote, ok := strings.CutPrefix(name, "refs/remotes/"); ok {
		_, branch, _ := strings.Cut(remote, "/")
		return branch, nil
	}
	current, err := g.line(ctx, "symbolic-ref", "--quiet", "HEAD")
	if err != nil || current == "" {
		return "", err
	}
	if !g.holds(ctx, "HEAD", sha) {
		return "", nil // nor where it has no commit yet
	}
	return strings.TrimPrefix(current, localBranch), nil
}

// together asks git several things at once and returns the first thing that
// went wrong.
func together(questions ...func() error) error {
	errs := make([]error, len(questions))
	var all sync.WaitGroup
	for i, ask := range questions {
		all.Go(func() { errs[i] = ask() })
	}
	all.Wait()
	return cmp.Or(errs...)
}

// told returns what the commit itself tells.
func (g gitRepo) told(ctx context.Context, sha string) (ledger.Registration, error) {
	const format = "%P%x00%an%x00%ae%x00%ct%x00%B"
	out, err := g.run(ctx, "log", "-1", "--no-show-signature", "--no-color", "--encoding=UTF-8", "--format="+format, sha)
	if err != nil {
		return ledger.Registration{}, err
	}
	fields := strings.SplitN(out, "\x00", 5)
	if len(fields) != 5 {
		return ledger.Registration{}, fmt.Errorf("git log printed %d fields of commit %s where 5 were asked for", len(fields), short(sha))
	}
	return ledger.Registration{
		Parents:     strings.Fields(fields[0]),
		Author:      ledger.Author{Name: plainText(fields[1]), Email: plainText(fields[2])},
		CommittedAt: commitTime(fields[3]),
		Message:     messageText(fields[4]),
	}, nil
}

// commitTime reads the Unix seconds of a commit. They can be anything, and those
// that the ledger does not take are none.
func commitTime(seconds string) ledger.Time {
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return 0
	}
	var t ledger.Time
	if t.UnmarshalText([]byte(time.Unix(n, 0).UTC().Format(time.RFC3339))) != nil {
		return 0
	}
	return t
}

// plainText returns s without what git lets into names and the ledger does not.
func plainText(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD")))
}

// messageText returns a commit's message, cut where the ledger would refuse it.
func messageText(s string) string {
	s = strings.TrimSpace(strings.ToValidUTF8(s, "\uFFFD"))
	return strings.ToValidUTF8(s[:min(len(s), maxMessage)], "")
}
