//go:build unix

package service

import (
	"math"
	"syscall"
)

// maxFiles returns how many files the process may have open.
func maxFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt32
	}
	return int(min(uint64(limit.Cur), math.MaxInt32)) // signed on some systems
}
