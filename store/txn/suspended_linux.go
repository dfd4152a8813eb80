package txn

import (
	"time"

	"golang.org/x/sys/unix"
)

// Suspended returns for how long the machine was suspended since it booted. Monotonic readings of
// package time stand still in this time.
func Suspended() time.Duration {
	var boot, monotonic unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil ||
		unix.ClockGettime(unix.CLOCK_MONOTONIC, &monotonic) != nil {
		return 0
	}
	return time.Duration(boot.Nano() - monotonic.Nano())
}
