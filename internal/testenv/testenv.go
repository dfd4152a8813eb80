// Package testenv decides which tests run, and how much they try: some take minutes, and some need
// programs that not every machine has.
package testenv

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// requireVariable is an environment variable. If it is "all", as in .ci/run, a test that cannot
// run fails.
const requireVariable = "LEDGERD_TEST_REQUIRE"

// common are the programs that machines with this repository have.
var common = []string{"bash", "git", "go"}

// Need skips the test if one of the programs is not in PATH, and below the level [Push] if not all
// developers have them.
func Need(t testing.TB, programs ...string) {
	t.Helper()
	var missing []string
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, program)
		}
	}
	if len(missing) > 0 {
		Missing(t, strings.Join(missing, " and "))
	}
	for _, program := range programs {
		if !slices.Contains(common, program) {
			From(t, Push, "starts "+program)
		}
	}
}

// Missing skips the test because the machine lacks what, such as a program or a permission.
func Missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv(requireVariable) == "all" {
		t.Fatalf("needs %s (%s=all)", what, requireVariable)
	}
	t.Skipf("needs %s, as .ci/run has", what)
}
