package pgtest

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

// portVariable has the port of the server that [RunAgain] started.
const portVariable = "PGTEST_PORT"

// RunAgain runs the tests of the calling test's package again, in another process. There,
// [NewLocation] returns databases of a new PostgreSQL server. once maps reasons to regular
// expressions: tests whose names match one of them are not run again.
//
// It runs at the level [testenv.Full], or if the flag -run names the calling test. Below it, the flag
// names the tests that are run again: -run TestOnPostgreSQL/TestScript/serve.
func RunAgain(t *testing.T, once map[string]string) {
	t.Helper()
	if OnPostgreSQL() {
		t.Skip("the tests run on PostgreSQL already")
	}
	testenv.From(t, testenv.Full, "takes minutes")
	_, tests, _ := strings.Cut(flag.Lookup("test.run").Value.String(), "/")
	cluster := Start(t, Fast()...)
	program, err := os.Executable()
	must.OK(t, err)
	args := []string{"-test.run=" + tests, "-test.skip=^(" + strings.Join(slices.Sorted(maps.Values(once)), "|") + ")$"}
	if testing.Verbose() {
		args = append(args, "-test.v")
	}
	flag.Visit(func(f *flag.Flag) {
		if f.Name == "test.short" || f.Name == "test.parallel" {
			args = append(args, fmt.Sprintf("-%s=%s", f.Name, f.Value))
		}
	})
	if deadline, ok := t.Deadline(); ok {
		args = append(args, fmt.Sprintf("-test.timeout=%s", time.Until(deadline)-10*time.Second))
	}

	var output bytes.Buffer
	command := exec.CommandContext(t.Context(), program, args...)
	command.Env = append(os.Environ(), portVariable+"="+strconv.Itoa(cluster.port))
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		t.Errorf("on PostgreSQL: %v", err)
	}
	if t.Failed() || testing.Verbose() {
		t.Logf("%s", &output)
	}
	if bytes.Contains(output.Bytes(), []byte("no tests to run")) {
		t.Errorf("no test has the name %q", tests)
	}
}

// OnPostgreSQL reports whether RunAgain runs the tests of this process.
func OnPostgreSQL() bool { return os.Getenv(portVariable) != "" }

// NewLocation returns the location of a ledger that does not exist yet: a file in a folder, and in
// tests that [RunAgain] runs, a database. cleanup is called with what removes the database.
func NewLocation(cleanup func(func()), folder, file string) (string, error) {
	if !OnPostgreSQL() {
		return filepath.Join(folder, file), nil
	}
	port, err := strconv.Atoi(os.Getenv(portVariable))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", portVariable, err)
	}
	c := &Cluster{port: port}
	name, err := c.copy(cleanup, empty)
	return c.url(name), err
}

// NewKeys returns the variables with the keys of the logs, which servers need for a ledger in a
// database. It creates a seed in the folder. For a file, the variables are not needed.
func NewKeys(folder string) (env []string, err error) {
	if !OnPostgreSQL() {
		return nil, nil
	}
	keys := filepath.Join(folder, "log-keys")
	if output, err := exec.Command("ledgerd", "log", "new-seed", keys).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("ledgerd log new-seed: %w\n%s", err, output)
	}
	return []string{
		"LEDGERD_LOG_KEY_DIR=" + keys, "LEDGERD_LOG_STATE_DIR=" + filepath.Join(folder, "ledger.db-keys"),
	}, nil
}
