//go:build unix

package fault_test

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/e2e/internal/filecheck"
)

// aMoment waits for a random time.
func aMoment() { time.Sleep(time.Duration(20+rand.IntN(700)) * time.Millisecond) }

// A killed server loses nothing.
func TestFaultKill(t *testing.T) {
	t.Parallel()
	v := newVictim(t, t.TempDir())
	for range times(3, 30) {
		v.under(func() {
			aMoment()
			v.stop(syscall.SIGKILL)
		})
		v.check()
		v.start()
	}
	v.finish("`kill -9`")
}

// A server that is stopped under load answers every request, and ends with 0.
func TestFaultStopUnderLoad(t *testing.T) {
	t.Parallel()
	v := newVictim(t, t.TempDir())
	for range times(2, 10) {
		v.under(func() {
			aMoment()
			if err := v.stop(syscall.SIGTERM); err != nil {
				t.Errorf("%v\n%s", err, v.log.String())
			}
		})
		if n := v.load.Book.Count(filecheck.Unknown); n > 0 {
			t.Errorf("%d requests were not answered", n)
		}
		v.check()
		v.start()
	}
	v.finish("SIGTERM under load")
}
