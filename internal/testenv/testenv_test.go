package testenv_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/testenv"
)

// A result is a test that records how it ended.
type result struct {
	testing.TB
	skipped, failed string
}

func (r *result) Helper() {}

func (r *result) Name() string { return "TestResult" }

func (r *result) Skipf(format string, args ...any) {
	if r.failed == "" { // Fatalf of a real test does not return
		r.skipped = fmt.Sprintf(format, args...)
	}
}

func (r *result) Fatalf(format string, args ...any) { r.failed = fmt.Sprintf(format, args...) }

// A test whose programs are missing is skipped with one line that names them, and fails where all
// are required.
func TestMissingProgramsSkipOrFail(t *testing.T) {
	t.Setenv("LEDGERD_TEST_LEVEL", "push")
	for name, tc := range map[string]struct {
		require         string
		programs        []string
		skipped, failed string
	}{
		"installed": {"all", []string{"go"}, "", ""},
		"none":      {"all", nil, "", ""},
		"missing": {"", []string{"go", "no-such-a", "no-such-b"}, "no-such-a and no-such-b, as .ci/run has",
			""},
		"missing, but required": {"all", []string{"no-such-a"}, "", "needs no-such-a"},
	} {
		t.Setenv("LEDGERD_TEST_REQUIRE", tc.require)
		var r result
		testenv.Need(&r, tc.programs...)
		if !matches(r.skipped, tc.skipped) || !matches(r.failed, tc.failed) {
			t.Errorf("%s: skipped %q, failed %q", name, r.skipped, r.failed)
		}
	}
}

// matches reports whether a message contains the text, or whether both are empty.
func matches(message, text string) bool {
	return strings.Contains(message, text) && (message == "") == (text == "")
}

// Tests of a level are skipped below it, with a line that says what runs them.
func TestLevels(t *testing.T) {
	costs := func(t testing.TB) { testenv.From(t, testenv.Full, "takes minutes") }
	starts := func(t testing.TB) { testenv.Need(t, "go", "env") }
	for _, tc := range []struct {
		level   string
		needs   func(testing.TB)
		skipped string
		pick    string
	}{
		{"", costs, "takes minutes: runs with -run TestResult and in .ci/run full", "few"},
		{"push", costs, "takes minutes: runs with -run TestResult and in .ci/run full", "some"},
		{"full", costs, "", "many"},
		{"quick", starts, "starts env: runs with -run TestResult and in .ci/run", "few"},
		{"push", starts, "", "some"},
	} {
		t.Setenv("LEDGERD_TEST_LEVEL", tc.level)
		var r result
		tc.needs(&r)
		pick := testenv.Pick("few", "some", "many")
		if r.skipped != tc.skipped || r.failed != "" || pick != tc.pick {
			t.Errorf("level %q: skipped %q, failed %q, picked %q; want %q, none, %q",
				tc.level, r.skipped, r.failed, pick, tc.skipped, tc.pick)
		}
	}
}

// Random tests have the same numbers for one seed, and others for another.
func TestSeed(t *testing.T) {
	var got []uint64
	for _, seed := range []string{"", "0", "268435455", "7"} {
		t.Setenv("LEDGERD_TEST_SEED", seed)
		got = append(got, testenv.Rand(t).Uint64())
	}
	if got[0] != got[1] || got[2] == got[3] || got[1] == got[2] {
		t.Errorf("drew %v: the first two should be the same, and no others", got)
	}
}

// A test that the flag -run names runs at every level.
func TestNamedTestsAreNotSkipped(t *testing.T) {
	run := flag.Lookup("test.run").Value
	before := run.String()
	t.Cleanup(func() { _ = run.Set(before) })
	t.Setenv("LEDGERD_TEST_LEVEL", "quick")
	for pattern, isSkipped := range map[string]bool{
		"": true, "Result": true, "TestResult": false, "^TestResult$": false, "TestResult/a/b": false,
		"^TestResult$/a": false, "TestA|TestResult": false, "^(TestResult|TestA)$": false, "TestA|Result": true,
	} {
		if err := run.Set(pattern); err != nil {
			t.Fatal(err)
		}
		var r result
		testenv.From(&r, testenv.Push, "takes seconds")
		if (r.skipped != "") != isSkipped {
			t.Errorf("-run %q: skipped %q, want %t", pattern, r.skipped, isSkipped)
		}
	}
}

// Temporary files are where TMPDIR says. Otherwise they are in a folder whose programs can be started.
func TestTemporaryFiles(t *testing.T) {
	t.Setenv("TMPDIR", "/somewhere/else")
	testenv.UseMemory()
	if got := os.Getenv("TMPDIR"); got != "/somewhere/else" {
		t.Errorf("TMPDIR was %q afterwards", got)
	}

	t.Setenv("TMPDIR", "")
	testenv.UseMemory()
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := exec.Command(program).Run(); runtime.GOOS != "windows" && err != nil {
		t.Errorf("a program in %s: %v", os.TempDir(), err)
	}
}
