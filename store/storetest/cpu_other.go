//go:build !unix

package storetest

import "time"

// cpuTime reports that the system does not tell how much CPU time was used.
func cpuTime() (used time.Duration, ok bool) { return 0, false }
