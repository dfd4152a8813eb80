package testenv

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
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

// seedVariable is an environment variable with the seed of random tests. .ci/run takes it from the commit,
// so that each commit tries other inputs, and one commit always the same.
const seedVariable = "LEDGERD_TEST_SEED"

// Seed returns the seed of a random test, which a test that fails prints. The default is 0.
func Seed(t testing.TB) uint64 {
	t.Helper()
	text := cmp.Or(os.Getenv(seedVariable), "0")
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s is %q: use a number", seedVariable, text)
	}
	t.Logf("%s=%d", seedVariable, seed)
	return seed
}

// Rand returns the random numbers of a test, by its seed.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(Seed(t), 0))
}

// Check is like [rapid.Check], with as many checks as the level has and the seed of the tests, unless
// flags of rapid or RAPID_CHECKS say otherwise. Without a seed, rapid takes one.
func Check(t rapid.TB, property func(*rapid.T)) {
	t.Helper()
	setFlags()
	rapid.Check(t, property)
}

// setFlags sets the flags of rapid that are not given.
var setFlags = sync.OnceFunc(func() {
	values := map[string]string{"rapid.checks": fmt.Sprint(Pick(25, 100, 500)), "rapid.seed": os.Getenv(seedVariable)}
	flag.Visit(func(f *flag.Flag) { delete(values, f.Name) })
	if os.Getenv("RAPID_CHECKS") != "" {
		delete(values, "rapid.checks")
	}
	for name, value := range values {
		if value == "" {
			continue
		}
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
})
