package testenv

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// A Level says how much tests try.
type Level int

const (
	// Quick is the level of 'go test ./...', after each change.
	Quick Level = 1 + iota
	// Push is the level of .ci/run.
	Push
	// Full is the level of '.ci/run full'.
	Full
)

// levelVariable is an environment variable with the level of the tests.
const levelVariable = "LEDGERD_TEST_LEVEL"

// CurrentLevel returns the level of the tests of this process.
func CurrentLevel() Level {
	switch os.Getenv(levelVariable) {
	case "", "quick":
		return Quick
	case "push":
		return Push
	case "full":
		return Full
	}
	panic(fmt.Sprintf("%s is %q: use quick, push or full", levelVariable, os.Getenv(levelVariable)))
}

// From skips the test below a level, unless the flag -run names it. why says what the test costs.
// Benchmarks always run.
func From(t testing.TB, level Level, why string) {
	t.Helper()
	if _, isBenchmark := t.(*testing.B); isBenchmark || CurrentLevel() >= level {
		return
	}
	pattern, _, _ := strings.Cut(flag.Lookup("test.run").Value.String(), "/")
	name, _, _ := strings.Cut(t.Name(), "/")
	if named := strings.Split(strings.Trim(pattern, "^$()"), "|"); !slices.Contains(named, name) {
		t.Skipf("%s: runs with -run %s and in %s", why, name, level.command())
	}
}

// command returns what runs the tests of a level.
func (l Level) command() string {
	if l == Full {
		return ".ci/run full"
	}
	return ".ci/run"
}

// Pick returns the value for the level of the tests, such as a number of repetitions.
func Pick[T any](quick, push, full T) T {
	return [...]T{Quick: quick, Push: push, Full: full}[CurrentLevel()]
}

// Check is like [rapid.Check], with as many checks as the level has unless RAPID_CHECKS or the flag
// -rapid.checks says otherwise.
func Check(t rapid.TB, property func(*rapid.T)) {
	t.Helper()
	setChecks()
	rapid.Check(t, property)
}

// setChecks sets the number of checks of rapid.
var setChecks = sync.OnceFunc(func() {
	isGiven := os.Getenv("RAPID_CHECKS") != ""
	flag.Visit(func(f *flag.Flag) { isGiven = isGiven || f.Name == "rapid.checks" })
	if isGiven {
		return
	}
	if err := flag.Set("rapid.checks", fmt.Sprint(Pick(25, 100, 500))); err != nil {
		panic(err)
	}
})
