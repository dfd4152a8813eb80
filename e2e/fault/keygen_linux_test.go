package fault_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ledgerd/ledgerd/e2e/internal/powercut"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

// parsePair returns an error unless the files of a key and its certificate are complete.
func parsePair(key, cert []byte) (public string, err error) {
	block, _ := pem.Decode(key)
	if block == nil {
		return "", fmt.Errorf("the key has %d bytes and is not PEM", len(key))
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return "", err
	}
	private, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return "", errors.New("not an Ed25519 key")
	}
	if block, _ = pem.Decode(cert); block == nil {
		return "", fmt.Errorf("the certificate has %d bytes and is not PEM", len(cert))
	}
	_, err = x509.ParseCertificate(block.Bytes)
	return string(private.Public().(ed25519.PublicKey)), err
}

// A key that keygen has written survives a power cut, and a key that it replaces is
// complete until the new one is.
func TestFaultPowerCutDuringKeygen(t *testing.T) {
	slow(t)
	testenv.Need(t, "strace")
	const cuts = 200
	keygen := func(dir string, more ...string) *exec.Cmd {
		return exec.Command("ledgerd", append([]string{"keygen", "--dn", "cn=ci,ou=build,o=acme",
			"--out", filepath.Join(dir, "ci")}, more...)...)
	}

	t.Run("new", func(t *testing.T) {
		dir := t.TempDir()
		trace := traceOf(t, dir, keygen(dir))
		for _, c := range ends(trace) {
			files := trace.Disk(c)
			if _, err := parsePair(files["ci.key"], files["ci.crt"]); err != nil {
				t.Errorf("%s: %v", c, err)
			}
		}
	})

	t.Run("replaced", func(t *testing.T) {
		dir := t.TempDir()
		must.OK(t, keygen(dir).Run())
		old := must.Get(parsePair(readFolder(t, dir)["ci.key"], readFolder(t, dir)["ci.crt"]))(t)
		trace := traceOf(t, dir, keygen(dir, "--force"))

		for _, c := range trace.Cuts(cuts, rand.New(rand.NewPCG(1, 1)), func(powercut.Message) bool { return false }) {
			files := trace.Disk(c)
			if _, err := parsePair(files["ci.key"], files["ci.crt"]); err != nil {
				t.Errorf("%s: %v", c, err)
			}
		}
		for _, c := range ends(trace) {
			files := trace.Disk(c)
			switch key, err := parsePair(files["ci.key"], files["ci.crt"]); {
			case err != nil:
				t.Errorf("%s: %v", c, err)
			case key == old:
				t.Errorf("%s: the key is still the old one", c)
			}
		}
	})
}
