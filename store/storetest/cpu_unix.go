//go:build unix

package storetest

import (
	"syscall"
	"time"
)

// cpuTime returns the CPU time that the process has used, in user and in system
// mode.
func cpuTime() (used time.Duration, ok bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
