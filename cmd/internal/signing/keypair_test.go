package signing

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
)

// TestWritePair checks that no certificate remains if its key cannot be written, and
// that an existing key is not changed.
func TestWritePair(t *testing.T) {
	name := filepath.Join(t.TempDir(), "ci")
	must.OK(t, os.WriteFile(name+".key", []byte("old"), 0o600))
	if err := writePair(name, []byte("key"), []byte("cert")); err == nil {
		t.Error("writePair overwrote a key")
	}
	if text, err := os.ReadFile(name + ".key"); string(text) != "old" {
		t.Errorf("the key is %q (%v), want the old one", text, err)
	}
	if _, err := os.Lstat(name + ".crt"); !os.IsNotExist(err) {
		t.Errorf("the certificate remains (%v)", err)
	}
}
