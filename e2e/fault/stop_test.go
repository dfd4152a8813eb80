//go:build unix

package fault_test

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"time"
)

// aMoment waits for a random time.
func aMoment() { time.Sleep(time.Duration(20+rand.IntN(700)) * time.Millisecond) }

// A killed server loses nothing.
func TestFaultKill(t *testing.T) {
	slow(t)
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

// A server that is stopped under load answers every request that it records, and ends with
// 0. Connections that the system has, but the server has not accepted yet, are reset.
func TestFaultStopUnderLoad(t *testing.T) {
	slow(t)
	t.Parallel()
	v := newVictim(t, t.TempDir())
	v.answersAll = true
	for range times(2, 10) {
		v.under(func() {
			aMoment()
			if err := v.stop(syscall.SIGTERM); err != nil {
				t.Errorf("%v\n%s", err, v.log.String())
			}
		})
		v.check()
		v.start()
	}
	v.finish("SIGTERM under load")
}
