//go:build !linux

package txn

import "time"

// Suspended returns 0: for how long the machine was suspended is not known.
func Suspended() time.Duration { return 0 }
