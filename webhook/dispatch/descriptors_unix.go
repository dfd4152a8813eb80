//go:build unix

package dispatch

import (
	"math"
	"syscall"
)

// descriptorLimit returns how many requests may be in flight: a quarter of the
// process's file descriptor limit. Another quarter may be idle connections, and the
// API and the database need descriptors too.
func descriptorLimit() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt32
	}
	return int(max(1, min(uint64(limit.Cur)/4, math.MaxInt32))) // signed on some systems
}
