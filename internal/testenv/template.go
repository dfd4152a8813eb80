package testenv

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Template returns a function that returns the path of a new copy of a file, in a temporary folder
// of the test. The first call creates the file. It is for files that take longer to create than to
// copy, such as databases.
func Template(name string, create func(path string) error) func(testing.TB) string {
	content := sync.OnceValues(func() ([]byte, error) {
		dir, err := os.MkdirTemp("", "ledgerd-template-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, name)
		if err := create(path); err != nil {
			return nil, err
		}
		return os.ReadFile(path)
	})

	return func(t testing.TB) string {
		t.Helper()
		bytes, err := content()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, bytes, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
}
