//go:build !linux

package testenv

func memory() (folder string, ok bool) { return "", false }
