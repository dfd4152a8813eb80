package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

// What docs/install.md says after the installation leads to the first attestation.
func TestInstallDocs(t *testing.T) {
	testenv.Need(t, "bash", "git")
	t.Parallel()
	o, folder := newEmptyLedger(t), t.TempDir()
	config := filepath.Join(folder, "config.yaml")
	text := must.Read(t, "../deploy/package/config.yaml")
	packaged := strings.NewReplacer("127.0.0.1:8080", o.address, "/var/lib/ledgerd/ledger.db", o.database)
	must.OK(t, os.WriteFile(config, []byte(packaged.Replace(string(text))), 0o600))
	o.env = append(o.env, "LEDGERD_CONFIG="+config)

	e := readExamples(t, "install.md")
	here := strings.NewReplacer("sudo -u ledgerd ", "", "/etc/ledgerd/config.yaml", config, "http://127.0.0.1:8080", o.url,
		"go test ./...", "git --version", "sudo systemctl enable --now ledgerd", "")
	run := func(script string) string {
		t.Helper()
		command := exec.Command("bash", "-euo", "pipefail", "-c", here.Replace(script))
		command.Dir = folder
		command.Env = append(os.Environ(), "XDG_CONFIG_HOME="+folder)
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s\n%v\n%s", script, err, out)
		}
		return string(out)
	}

	doctor, ready, _ := strings.Cut(e.pick("sh", "ledgerd doctor"), "sudo systemctl enable --now ledgerd\n")
	run(doctor)
	o.start()
	run(ready)
	run(e.pick("sh", "org create acme --config"))
	run("git init -q api && cd api && git -c user.name=Ann -c user.email=ann@example.org commit -q --allow-empty -m one")
	if out := run(e.pick("sh", "ledgerd login")); !strings.Contains(out, "ATTESTED") {
		t.Errorf("the gate prints %q, want ATTESTED", out)
	}
}
