package config

import (
	"fmt"
	"io"
	"os"
	"runtime"
)

// loadPrivate parses the file with secrets that a setting names. A file to which other users have
// access is an error. The errors of parse must not contain secrets.
func loadPrivate[T any](setting, name string, parse func(io.Reader) (T, error)) (v T, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return v, fmt.Errorf("read %s: %w", setting, err)
	}
	if !info.Mode().IsRegular() {
		return v, fmt.Errorf("invalid %s: %s is not a file", setting, name)
	}
	if info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		return v, fmt.Errorf("invalid %s: others have access to %s (run chmod 600 %s)", setting, name, name)
	}

	file, err := os.Open(name)
	if err != nil {
		return v, fmt.Errorf("read %s: %w", setting, err)
	}
	defer file.Close()
	if v, err = parse(file); err != nil {
		return v, fmt.Errorf("invalid %s: %s: %w", setting, name, err)
	}
	return v, nil
}
