//go:build !unix

package webhook

// mostInFlight returns how many requests in flight the process can afford.
func mostInFlight() int { return maxTotalInFlight }
