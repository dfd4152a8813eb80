package network

import (
	"syscall"
	"time"
)

// pauseUntil returns at a time. It stops a thread for it, because the timers of Go are later by up to a
// millisecond while the program is idle.
func pauseUntil(due time.Time) {
	for left := time.Until(due); left > 0; left = time.Until(due) {
		pause := syscall.NsecToTimespec(int64(left))
		_ = syscall.Nanosleep(&pause, nil) // if a signal ends it early, the rest follows
	}
}
