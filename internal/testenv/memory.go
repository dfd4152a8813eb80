package testenv

import (
	"os"
	"testing"
)

// InMemory is the main function of the tests of a package that write many temporary files: they are in
// memory where there is room. The environment variable TMPDIR takes precedence.
func InMemory(m *testing.M) {
	UseMemory()
	os.Exit(m.Run())
}

// UseMemory has this process, and those that it starts, keep temporary files in memory where there is
// room.
func UseMemory() {
	if os.Getenv("TMPDIR") != "" {
		return
	}
	if folder, ok := memory(); ok {
		_ = os.Setenv("TMPDIR", folder)
	}
}
