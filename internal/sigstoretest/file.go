// Package sigstoretest reads the Sigstore bundles and trusted roots of tests, which
// ledger/testdata/sigstore/README.md explains.
package sigstoretest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Files that several packages use.
const (
	// Bundle is a keyless bundle of GitHub. PublicGood verifies it, and OtherRoot does not.
	Bundle = "github-sigstore-js-2.1.0.json"
	// PublicGood is the trusted root of the public good instance.
	PublicGood = "public-good-trusted_root.json"
	// OtherRoot is the trusted root of another instance.
	OtherRoot = "intoto-with-custom-trust-root-trusted_root.json"
)

// maxDepth limits how many folders a test is below the root of the module.
const maxDepth = 5

// File returns a file of ledger/testdata/sigstore. The test can be of any package.
func File(t testing.TB, name string) []byte {
	t.Helper()
	for depth := range maxDepth {
		path := filepath.Join(strings.Repeat("../", depth), "ledger", "testdata", "sigstore", name)
		switch text, err := os.ReadFile(path); {
		case err == nil:
			return text
		case !errors.Is(err, fs.ErrNotExist):
			t.Fatal(err)
		}
	}
	t.Fatalf("ledger/testdata/sigstore has no file %s", name)
	return nil
}
