package signing

import (
	"os"
	"path/filepath"
	"testing"
)

// TestWritePair checks that a certificate does not stay without its key, and
// that a key which came in between stays as it is.
func TestWritePair(t *testing.T) {
	name := filepath.Join(t.TempDir(), "ci")
	if err := os.WriteFile(name+".key", []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writePair(name, []byte("key"), []byte("cert")); err == nil {
		t.Error("a key was overwritten")
	}
	if text, err := os.ReadFile(name + ".key"); string(text) != "old" {
		t.Errorf("the key is %q (%v), want the old one", text, err)
	}
	if _, err := os.Lstat(name + ".crt"); !os.IsNotExist(err) {
		t.Errorf("the certificate is still there (%v)", err)
	}
}
