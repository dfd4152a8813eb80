package cmd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
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
	command.Env = append(os.Environ(), "LEDGERD_TOKEN="+token)
	var errors strings.Builder
	command.Stderr = &errors
	out, err := command.Output()
	if err != nil {
		t.Fatalf("attest: %v\n%s", err, errors.String())
	}

	if text := string(out); !strings.Contains(text, "started") || !strings.Contains(text, "ended") {
		t.Errorf("the command did not run: %s", text)
	}
	for _, secret := range []string{token, "LEDGERD_TOKEN", "read environ", "opened mem", "read link of fd"} {
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
		t.Skipf("as root, the test needs setpriv: %v", err)
	}
	return prefix
}
