package testenv_test

import (
	"fmt"
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

func (r *result) Skipf(format string, args ...any) {
	if r.failed == "" { // Fatalf of a real test does not return
		r.skipped = fmt.Sprintf(format, args...)
	}
}

func (r *result) Fatalf(format string, args ...any) { r.failed = fmt.Sprintf(format, args...) }

// A test whose programs are missing is skipped with one line that names them, and fails where all
// are required.
func TestMissingProgramsSkipOrFail(t *testing.T) {
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
