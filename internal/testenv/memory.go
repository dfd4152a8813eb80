package testenv

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"
)

// Main runs the tests of a package that has many, or some that wait, and exits: eight parallel tests at a
// time, with fewer garbage collections than in production, and with temporary files in memory if there is
// room. The flag -parallel and the environment variables GOGC and TMPDIR take precedence.
func Main(m *testing.M) {
	_ = flag.Set("test.parallel", "8")
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	UseMemory()
	os.Exit(m.Run())
}

// UseMemory has this process, and those that it starts, keep temporary files in memory if there is
// room.
func UseMemory() {
	if os.Getenv("TMPDIR") != "" {
		return
	}
	if folder, ok := memory(); ok {
		_ = os.Setenv("TMPDIR", folder)
	}
}
