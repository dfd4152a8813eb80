//go:build !linux || !amd64

package fastclock

import "errors"

// Supported reports whether Start works on this platform.
const Supported = false

// Start returns an error.
func Start(int64) error { return errors.New("clocks can only run faster on Linux on AMD64") }
