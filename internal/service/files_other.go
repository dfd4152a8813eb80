//go:build !unix

package service

import "math"

// maxFiles returns how many files the process may have open: here, any number.
func maxFiles() int { return math.MaxInt32 }
