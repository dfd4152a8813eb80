package e2e_test

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

var oapiCodegen = flag.String("oapi-codegen", "", "`path` of oapi-codegen, for TestGeneratedGoClient")

// A Go client generated from openapi.yaml compiles, records an attestation and
// reads it back.
func TestGeneratedGoClient(t *testing.T) {
	if *oapiCodegen == "" {
		t.Skip("-oapi-codegen is not set")
	}
	testenv.Need(t, "go")
	generator := must.Get(filepath.Abs(*oapiCodegen))(t)
	description := must.Get(filepath.Abs("../server/openapi.yaml"))(t)
	dir := t.TempDir()
	must.OK(t, os.CopyFS(dir, os.DirFS("testdata/openapi")))
	must.OK(t, os.Mkdir(filepath.Join(dir, "api"), 0o700))
	program := filepath.Join(dir, "program")
	for _, args := range [][]string{
		{generator, "-config", "oapi-codegen.yaml", description},
		{"go", "vet", "./..."},
		{"go", "build", "-o", program, "."},
	} {
		command := exec.Command(args[0], args[1:]...)
		command.Dir = dir
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}

	o := newOrg(t)
	o.start()
	payload, err := attestation.NewStatement("git+https://git.example/acme/api", strings.Repeat("c0ffee00", 5),
		attestation.ResultPredicate{
			Predicate: "test:go", Result: ledger.Result{Status: ledger.Pass, DurationMS: 12},
		})
	must.OK(t, err)
	envelope := must.Get(attestation.SignDSSE(o.key, payload))(t)
	command := exec.Command(program)
	command.Stdin = bytes.NewReader(envelope)
	command.Env = append(os.Environ(), "LEDGERD_URL="+o.url, "LEDGERD_TOKEN="+o.token)
	out, err := command.CombinedOutput()
	if want := regexp.MustCompile(`^att_\w{26} test:go pass ATTESTED\n$`); err != nil || !want.Match(out) {
		t.Errorf("run the client: %v\n%s", err, out)
	}
}
