//go:build !unix

package dispatch

import "math"

// descriptorLimit returns how many requests may be in flight: here, any number.
func descriptorLimit() int { return math.MaxInt32 }
