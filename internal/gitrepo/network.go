package gitrepo

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// network runs a git command that connects to remoteName, and returns its standard output. It
// obeys the configuration of the clone for credentials: headers, helpers and the ssh command. It
// runs no hooks, never asks for a password, and uses no transport that can be any command.
func (g Repo) network(ctx context.Context, args ...string) (string, error) {
	name := "ledgerd-" + rand.Text() // the configuration of the clone cannot have settings of it
	options, ssh, err := g.origin(ctx, name)
	if err != nil {
		return "", err
	}
	args = slices.Clone(args)
	if i := slices.Index(args, remoteName); i >= 0 {
		args[i] = name
	}
	command := g.newCommand(ctx, "file:git:http:https:ssh", append(options, args...))
	command.Env = append(command.Env, "GCM_INTERACTIVE=never")
	if ssh == "" && os.Getenv("GIT_SSH_COMMAND") == "" && os.Getenv("GIT_SSH") == "" {
		command.Env = append(command.Env, "GIT_SSH_COMMAND=ssh -o BatchMode=yes")
	}

	command.WaitDelay = time.Second // git's own children may keep the output open
	var stdout bytes.Buffer
	command.Stdout = &stdout
	if err := command.Run(); err != nil {
		if errors.Is(err, exec.ErrWaitDelay) {
			err = context.DeadlineExceeded
		}
		err = failure(command, args[0], err)
		if e, ok := errors.AsType[*commandError](err); ok {
			e.stderr = firstLines(e.stderr)
		}
		return "", err
	}
	return stdout.String(), nil
}

// remoteName stands for the remote that git connects to, in the arguments of a command. It is origin, without
// the settings of origin that are commands.
const remoteName = "ledgerd-origin"

// origin returns the options of git that define origin under another name, and the ssh command that the clone
// configures, if any. git applies url.BASE.insteadOf to the URL and looks up credentials for it. A
// remote that has the missing objects of a partial clone keeps doing so.
func (g Repo) origin(ctx context.Context, as string) (options []string, ssh string, err error) {
	out, err := g.line(ctx, "config", "-z", "--get-regexp",
		`^(core\.sshcommand|remote\.origin\.(url|proxy|proxyauthmethod|promisor|partialclonefilter))$`)
	if err != nil {
		return nil, "", err
	}

	hasURL := false
	set := func(setting string) { options = append(options, "-c", "remote."+as+"."+setting) }
	for _, setting := range splitNull(out) {
		name, value, hasValue := strings.Cut(setting, "\n")
		name, isRemote := strings.CutPrefix(name, "remote.origin.")
		switch {
		case !isRemote:
			ssh = value
		case name == "url" && hasURL: // git fetches from the first
		case hasValue:
			hasURL = hasURL || name == "url"
			set(name + "=" + value)
		default:
			set(name)
		}
	}

	if !hasURL {
		return nil, "", errors.New("the clone has no remote origin: add it with 'git remote add origin URL'")
	}
	set("uploadpack=git-upload-pack")
	return append(options, "-c", "core.alternateRefsCommand=true"), ssh, nil // true lists no refs
}

// firstLines returns the first paragraph of git's messages as one line: after it come hints.
func firstLines(stderr string) string {
	const most = 400 // bytes
	paragraph, _, _ := strings.Cut(stderr, "\n\n")
	line := strings.Join(strings.Split(strings.TrimSpace(paragraph), "\n"), "; ")
	return strings.ToValidUTF8(line[:min(len(line), most)], "")
}
