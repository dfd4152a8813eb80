//go:build unix

package webhook

import "syscall"

// mostInFlight returns how many requests in flight the process can afford: a
// quarter of the files that it may have open. As many connections again may
// wait for their next request, and the API and the database need theirs.
func mostInFlight() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return maxTotalInFlight
	}
	return int(max(1, min(uint64(limit.Cur)/4, maxTotalInFlight))) // some systems' is signed
}
