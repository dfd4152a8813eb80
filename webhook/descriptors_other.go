//go:build !unix

package webhook

import "math"

// affordable returns how many requests in flight the process can afford.
func affordable() int { return math.MaxInt32 }
