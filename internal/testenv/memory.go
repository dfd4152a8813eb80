package testenv

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"
)

// Main is the main function of the tests of a package that are many or wait: parallel tests run eight at a
// time, memory is collected less often than in production, and temporary files are in memory if there is
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
