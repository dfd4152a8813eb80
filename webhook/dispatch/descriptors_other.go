//go:build !unix

package dispatch

import "math"

// affordable returns how many requests in flight the process can afford.
func affordable() int { return math.MaxInt32 }
