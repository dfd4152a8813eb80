package fastclock_test

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/e2e/internal/fastclock"
	"github.com/ledgerd/ledgerd/internal/must"
)

// A process whose clocks run 120 times faster sleeps a minute in half a second, and
// wall and monotonic time agree.
func TestClocksRunFaster(t *testing.T) {
	const asChild = "FASTCLOCK_CHILD"
	if os.Getenv(asChild) == "" {
		if !fastclock.Supported {
			t.Skip("not supported on this platform")
		}
		command := exec.Command(os.Args[0], "-test.run=^TestClocksRunFaster$", "-test.v")
		command.Env = append(os.Environ(), asChild+"=1")
		start := time.Now()
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("a minute took %s", took)
		}
		return
	}

	must.OK(t, fastclock.Start(120))
	start := time.Now()
	time.Sleep(time.Minute)
	<-time.After(time.Second)
	end := time.Now()
	if elapsed := end.Sub(start); elapsed < 61*time.Second {
		t.Errorf("a sleep of 61 s took %s", elapsed)
	}
	if off := end.Round(0).Sub(start.Round(0)) - end.Sub(start); off.Abs() > time.Second {
		t.Errorf("the wall clock is %s ahead of the monotonic clock", off)
	}
	if err := fastclock.Start(2); err == nil {
		t.Error("a second Start returned no error")
	}
}
