//go:build !unix

package record

import "time"

// cpuTime reports false: the system does not provide the CPU time.
func cpuTime() (used time.Duration, ok bool) { return 0, false }
