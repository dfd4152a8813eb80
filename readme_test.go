package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

// TestReadmeFirstTenMinutes runs the commands of the README's section of that name.
func TestReadmeFirstTenMinutes(t *testing.T) {
	out := runReadme(t, readmeSection(t))
	for _, want := range []string{"ATTESTED", "review:*", "PROMOTABLE ✓", `"predicate":"test:go"`,
		"acme/api (.ledgerd.yaml)", `"type":"attestation"`, `"requirements"`} {
		if !strings.Contains(out, want) {
			t.Errorf("the output does not contain %q:\n%s", want, out)
		}
	}
}

// TestReadmeWithOneKey runs the same commands, but the CI key signs the review as well, which it may
// not. The commit stays ATTESTED.
func TestReadmeWithOneKey(t *testing.T) {
	section := strings.ReplaceAll(readmeSection(t), "--key ~/rita.key", "--key .ledgerd/ci.key || true")
	section = strings.Replace(section, "# exit 0: ready to deploy", "# exit 4", 1)
	section = strings.Replace(section, "# exit 0\n", "# exit 4\n", 1) // the same over HTTP
	out := runReadme(t, section)
	for _, want := range []string{"is ATTESTED ✗ (PROMOTABLE required)",
		"cn=ci,ou=build,o=acme may not attest review:code"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output does not contain %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "State: PROMOTABLE") {
		t.Errorf("one key made the commit PROMOTABLE:\n%s", out)
	}
}

// runReadme runs the commands of the README's section in a new git repository with a Go
// module, and returns their output.
func runReadme(t *testing.T, section string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the README's commands are for a Unix shell")
	}
	testenv.Need(t, "bash", "curl", "git", "go")
	dir := t.TempDir()
	t.Setenv("GOBIN", filepath.Join(dir, "bin"))
	run(t, ".", "go", "install", ".")
	for name, text := range map[string]string{
		"go.mod":       "module example.org/api\n\ngo 1.26\n",
		"api_test.go":  "package api\n\nimport \"testing\"\n\nfunc TestNothing(t *testing.T) {}\n",
		"first-ten.sh": readmeScript(t, section),
	} {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}

	run(t, dir, "git", "init", "-q", "-b", "main")
	run(t, dir, "git", "add", "go.mod", "api_test.go")
	run(t, dir, "git", "-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-q", "-m", "Begin")

	// Hide the configuration of the machine.
	for _, name := range []string{"LEDGERD_URL", "LEDGERD_TOKEN", "LEDGERD_DATABASE", "LEDGERD_CONFIG",
		"LEDGERD_REPO", "LEDGERD_TOKEN_FILE", "XDG_CONFIG_HOME"} {
		t.Setenv(name, "")
		os.Unsetenv(name)
	}
	t.Setenv("GOMODCACHE", strings.TrimSpace(run(t, ".", "go", "env", "GOMODCACHE")))
	t.Setenv("GOCACHE", strings.TrimSpace(run(t, ".", "go", "env", "GOCACHE")))
	t.Setenv("HOME", dir)
	t.Setenv("PATH", filepath.Join(dir, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))

	return run(t, dir, "bash", "first-ten.sh")
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	command := exec.Command(name, args...)
	command.Dir = dir
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// readmeSection returns the README's section on the first ten minutes.
func readmeSection(t *testing.T) string {
	t.Helper()
	text := must.Read(t, "README.md")
	_, section, ok := strings.Cut(string(text), "## The first ten minutes")
	section, _, ok2 := strings.Cut(section, "Statements signed with cosign")
	if !ok || !ok2 {
		t.Fatal(`README.md has no section "The first ten minutes", or its end has changed`)
	}
	return section
}

// readmeScript joins the section's shell blocks into one script. The script runs the
// server in the background on a free port. If a comment names a line's exit status,
// the script checks it.
func readmeScript(t *testing.T, section string) string {
	t.Helper()
	script := "set -eu\n"
	for i, block := range strings.Split(section, "```") {
		if i%2 == 0 {
			continue // prose
		}
		for line := range strings.Lines(strings.TrimPrefix(block, "sh\n")) {
			script += readmeLine(strings.TrimRight(line, "\n")) + "\n"
		}
	}
	return strings.ReplaceAll(script, "127.0.0.1:8080", freeAddress(t))
}

func readmeLine(line string) string {
	switch {
	case strings.HasPrefix(line, "go install "):
		return "" // already installed
	case strings.HasPrefix(line, "ledgerd serve "):
		return line + " &\ntrap 'kill %1; wait' EXIT\n" +
			"for i in $(seq 100); do curl -sf http://127.0.0.1:8080/readyz > /dev/null && break; sleep 0.1; done"
	case strings.Contains(line, "# exit 4"):
		return "status=0; " + strings.Split(line, "#")[0] + "|| status=$?; test $status -eq 4"
	}
	return line
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	return listener.Addr().String()
}

func TestEveryErrorCodeIsDocumented(t *testing.T) {
	source := must.Read(t, "ledger/error.go")
	docs := must.Read(t, "docs/api.md")
	codes := regexp.MustCompile(`Code = "([a-z_]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(codes) < 20 {
		t.Fatalf("found only %d codes in ledger/error.go", len(codes))
	}
	for _, code := range codes {
		if !strings.Contains(string(docs), fmt.Sprintf("| <a id=%q></a>`%s` |", code[1], code[1])) {
			t.Errorf("docs/api.md does not describe the code %s", code[1])
		}
	}
}
