//go:build !linux

package subprocess

// hideMemory does nothing: only Linux can hide a process from others of its user.
func hideMemory() error { return nil }
