//go:build unix

package dispatch

import (
	"math"
	"syscall"
)

// affordable returns how many requests in flight the process can afford: a
// quarter of the files that it may have open. As many connections again may
// wait for their next request, and the API and the database need theirs.
func affordable() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt32
	}
	return int(max(1, min(uint64(limit.Cur)/4, math.MaxInt32))) // some systems' is signed
}
