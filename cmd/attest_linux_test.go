package cmd_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/gitrepo/gitrepotest"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

// The command under attest cannot read the API token from the process that runs it.
func TestFaultAttestedCommandCannotReadTheToken(t *testing.T) {
	v := newVictim(t)
	dir := t.TempDir()
	key := filepath.Join(dir, "ci")
	v.keygen(key)
	token := v.ledgerd("token", "create", "--org", "acme", "--name", "ci", "--scope", "write")
	v.start()

	const script = `
		echo started
		env
		cat /proc/$PPID/environ && echo read environ
		dd if=/proc/$PPID/mem bs=1 count=0 && echo opened mem
		readlink /proc/$PPID/fd/0 && echo read link of fd
		echo ended`
	args := []string{"ledgerd", "attest", "acme/api", "--server", v.url, "--commit", strings.Repeat("1", 40),
		"--predicate", "test:go", "--key", key + ".key", "--", "sh", "-c", script}
	args = append(unprivileged(t), args...)
	command := exec.Command(args[0], args[1:]...)
	command.Env = append(os.Environ(), "LEDGERD_TOKEN="+token, "LEDGERD_ID_TOKEN=token-of-the-job")
	var errors strings.Builder
	command.Stderr = &errors
	out, err := command.Output()
	if err != nil {
		t.Fatalf("attest: %v\n%s", err, errors.String())
	}

	if text := string(out); !strings.Contains(text, "started") || !strings.Contains(text, "ended") {
		t.Errorf("the command did not run: %s", text)
	}
	for _, secret := range []string{
		token, "LEDGERD_TOKEN", "token-of-the-job", "read environ", "opened mem", "read link of fd",
	} {
		if strings.Contains(string(out), secret) {
			t.Errorf("the command's output contains %q", secret)
		}
	}
}

// keygen makes a key that the org trusts.
func (v *victim) keygen(name string) {
	v.t.Helper()
	out, err := exec.Command("ledgerd", "keygen", "--dn", "cn=ci,ou=build,o=acme", "--out", name).CombinedOutput()
	if err != nil {
		v.t.Fatalf("keygen: %v\n%s", err, out)
	}
	v.ledgerd("identity", "add", "--org", "acme", "--cert", name+".crt")
}

// unprivileged returns a command prefix that takes the capabilities to read other
// processes from root, as containers do. Other users do not have them.
func unprivileged(t *testing.T) []string {
	if os.Geteuid() != 0 {
		return nil
	}
	const capabilities = "-sys_ptrace,-sys_admin,-perfmon"
	prefix := []string{"setpriv", "--bounding-set", capabilities, "--inh-caps", capabilities}
	if err := exec.Command(prefix[0], append(prefix[1:], "true")...).Run(); err != nil {
		testenv.Missing(t, "setpriv, as root")
	}
	return prefix
}

// The command of a CI job sees neither the variables with which tokens are requested nor any token.
// Nor can it read them from the process that runs it.
func TestJobsCommandSeesNoSecret(t *testing.T) {
	f := newForge(t)
	const script = `
		echo started
		env
		cat /proc/$PPID/environ && echo read environ
		dd if=/proc/$PPID/mem bs=1 count=0 && echo opened mem
		echo ended`

	token := f.provider.Token(f.provider.GitLab(f.victim.url+"/v1/orgs/acme", time.Now()))
	for name, tc := range map[string]struct{ env, secrets []string }{
		"GitHub": {f.variables(), []string{requestSecret, f.url}},
		"GitLab": {f.variables("GITLAB_CI=true", "LEDGERD_ID_TOKEN="+token), []string{token}},
	} {
		t.Run(name, func(t *testing.T) {
			args := append(unprivileged(t), "ledgerd", "attest", "acme/api", "--ci", "--commit", jobCommit, "--predicate",
				"test:go", "--", "sh", "-c", script)
			stdout, stderr, status := run(t, tc.env, args...)
			if status != 0 || !strings.Contains(stdout, "started") || !strings.Contains(stdout, "ended") {
				t.Fatalf("status %d: %s%s", status, stdout, stderr)
			}

			secrets := append(tc.secrets, "ID_TOKEN", "LEDGERD_TOKEN", "read environ", "opened mem")
			for _, secret := range secrets {
				if strings.Contains(stdout, secret) {
					t.Errorf("the command's output contains %q", secret)
				}
			}
		})
	}
}

// Other processes of the user can read the environment of git. So the git that registers the commit,
// after a command that may have left some running, has no secret either.
func TestGitAfterTheCommandSeesNoSecret(t *testing.T) {
	f := newForge(t)
	writer := f.ledgerd("token", "create", "--org", "acme", "--name", "ci", "--scope", "write")
	folder := t.TempDir()
	ended, seen := filepath.Join(folder, "ended"), filepath.Join(folder, "seen")
	git, err := exec.LookPath("git")
	must.OK(t, err)
	wrapper := fmt.Sprintf("#!/bin/sh\n[ -e %s ] && env >>%s\nexec %s \"$@\"\n", ended, seen, git)
	must.OK(t, os.WriteFile(filepath.Join(folder, "git"), []byte(wrapper), 0o700))

	repo, _ := gitrepotest.New(t, nil, gitrepotest.Tree{"a": gitrepotest.TextFile("text")})
	env := append(f.variables(), "LEDGERD_TOKEN="+writer, "LEDGERD_ID_TOKEN=", "PATH="+folder+":"+os.Getenv("PATH"))
	command := exec.Command("ledgerd", "attest", "acme/api", "--ci", "--commit", "HEAD", "--predicate", "test:go", "--",
		"touch", ended)
	command.Env, command.Dir = env, repo
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("attest: %v\n%s", err, out)
	}

	text := must.Read(t, seen)
	for _, secret := range []string{writer, requestSecret, f.url, "ID_TOKEN"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("git has %q in its environment", secret)
		}
	}
}
