//go:build !unix

package pgtest

import (
	"os/exec"
	"testing"
)

// asServer does nothing: only on Unix are there users under whom PostgreSQL refuses to run.
func asServer(testing.TB, string, *exec.Cmd) {}
