//go:build !linux

package network

import "time"

// pauseUntil returns at a time, or later by a millisecond.
func pauseUntil(due time.Time) { time.Sleep(time.Until(due)) }
