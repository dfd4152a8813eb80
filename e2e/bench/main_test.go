package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ledgerd/ledgerd/cmd"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/pgtest"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

func TestMain(m *testing.M) {
	testenv.UseMemory()
	testscript.Main(m, map[string]func(){
		"bench":   main,
		"ledgerd": func() { os.Exit(cmd.Execute()) },
	})
}

// TestScript runs small benchmarks. In addition to the commands of testscript there is 'exits STATUS COMMAND…',
// which checks the exit status of a command. The conditions [push] and [full] are false at lower levels than those.
func TestScript(t *testing.T) {
	testenv.Need(t, "git")
	runScripts(t, "testdata/script")
}

// TestOnPostgreSQL runs small benchmarks on a database, whose URL is in $DATABASE.
func TestOnPostgreSQL(t *testing.T) {
	testenv.From(t, testenv.Full, "takes half a minute")
	cluster := pgtest.Start(t, pgtest.Fast()...)
	database := cluster.NewDatabase(t)
	t.Run("scripts", func(t *testing.T) { runScripts(t, "testdata/postgres", "DATABASE="+database) })

	conn, err := pgx.Connect(t.Context(), database)
	must.OK(t, err)
	defer conn.Close(t.Context())
	left := 0
	err = conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'ledgerd_%'").Scan(&left)
	if err != nil || left > 0 {
		t.Errorf("%d schemas are left, %v", left, err)
	}
}

// runScripts runs the scripts in a folder, with additional variables.
func runScripts(t *testing.T, dir string, variables ...string) {
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": scriptExits},
		Setup: func(env *testscript.Env) error {
			env.Vars = append(env.Vars, variables...)
			return nil
		},
		Condition: func(condition string) (bool, error) {
			switch condition {
			case "push":
				return testenv.CurrentLevel() >= testenv.Push, nil
			case "full":
				return testenv.CurrentLevel() == testenv.Full, nil
			}
			return false, fmt.Errorf("unknown condition %q", condition)
		},
	})
}

func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND [ARG]...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		e, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = e.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// Without --ledgerd, bench builds the program of the checkout, and removes it.
func TestBuildsLedgerd(t *testing.T) {
	testenv.From(t, testenv.Push, "builds ledgerd")
	testenv.Need(t, "go")
	out, errors, err := bench(t, ".", "--attestations", "20", "--connections", "2", "--readers", "1", "--seconds", "10ms")
	if err != nil || errors != "building ledgerd\n" {
		t.Errorf("%v: %s", err, errors)
	}
	if !regexp.MustCompile(`(?m)^attest: 20, of 20 in the ledger then +\d+/s `).MatchString(out) {
		t.Errorf("bench prints:\n%s", out)
	}
}

// If it cannot build ledgerd, it says what to do.
func TestBuildsOnlyInACheckout(t *testing.T) {
	testenv.Need(t, "go")
	out, errors, err := bench(t, t.TempDir(), "gate")
	if e, ok := err.(*exec.ExitError); !ok || e.ExitCode() != exitFailure || out != "" {
		t.Errorf("%v, bench prints: %s", err, out)
	}
	const want = "bench: build ledgerd: exit status 1: run bench in a checkout of ledgerd, "
	if !strings.Contains(errors, "go.mod") || !strings.Contains(errors, want) {
		t.Errorf("got the errors:\n%s", errors)
	}
}

// bench runs bench in a folder, and checks that it leaves no temporary files.
func bench(t *testing.T, folder string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	temp := t.TempDir()
	command := exec.Command("bench", args...)
	command.Dir, command.Stdout, command.Stderr = folder, &out, &errs
	command.Env = append(os.Environ(), "TMPDIR="+temp, "TMP="+temp)
	err = command.Run()
	if left, readErr := os.ReadDir(temp); readErr != nil || len(left) > 0 {
		t.Errorf("bench leaves %v, %v", left, readErr)
	}
	return out.String(), errs.String(), err
}

func TestUsageErrors(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{"here", `unknown command "here"`},
		{"--connections 0", "must be at least 1"},
		{"--connections many", `invalid --connections "many": use a whole number`},
		{"--database ledger.db", "only a postgres:// URL"},
		{"--output xml", `invalid --output "xml": use table or json`},
		{"--ledgerd ./no-such-program", "invalid --ledgerd: "},
		{"crowd --unread 5000", "invalid --unread 5000: use 0 to 4999"},
		{"crowd --only reader", `invalid --only "reader": use readers, bodies,`},
		{"gate --attestations 9999", "--attestations must be at least 10000"},
		{"radar --paths 19", "--paths at least 20"},
		{"replicas", "servers can share only a PostgreSQL database: name one with --database"},
		{"replicas --database postgres://db --orgs 1", "--orgs"},
		{"stream --subscribers 0", "must be at least 1"},
		{"webhook --webhooks 1", "--webhooks 2 to 30"},
	} {
		var stdout, stderr bytes.Buffer
		status := run(strings.Fields(tc.args), nil, &stdout, &stderr)
		got := stderr.String()
		if status != exitUsage || stdout.Len() > 0 || !strings.HasPrefix(got, "bench: ") || !strings.Contains(got, tc.want) {
			t.Errorf("bench %s: status %d, %s%s", tc.args, status, &stdout, got)
		}
	}
}
