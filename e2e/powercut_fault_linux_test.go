package e2e_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ledgerd/ledgerd/e2e/internal/powercut"
)

// traceOf runs a command and returns the trace of its calls that affect a folder.
func traceOf(t *testing.T, folder string, c *exec.Cmd) *powercut.Trace {
	t.Helper()
	start, file := readFolder(t, folder), filepath.Join(t.TempDir(), "trace")
	check(t, powercut.Record(c, file))
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return readTrace(t, folder, start, file, c.Process.Pid)
}

// readTrace reads the trace of a process that has ended.
func readTrace(t *testing.T, folder string, start map[string][]byte, file string, pid int) *powercut.Trace {
	t.Helper()
	check(t, powercut.Wait(file, pid))
	in, err := os.Open(file)
	check(t, err)
	defer in.Close()
	trace, err := powercut.Parse(in, folder, start)
	check(t, err)
	return trace
}

func readFolder(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(folder)
	check(t, err)
	files := make(map[string][]byte)
	for _, entry := range entries {
		files[entry.Name()], err = os.ReadFile(filepath.Join(folder, entry.Name()))
		check(t, err)
	}
	return files
}

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
	need(t, "strace")
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
		check(t, keygen(dir).Run())
		old, err := parsePair(readFolder(t, dir)["ci.key"], readFolder(t, dir)["ci.crt"])
		check(t, err)
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

// ends returns power cuts after the end of a process, one for each loss.
func ends(trace *powercut.Trace) (cuts []powercut.Cut) {
	for loss := powercut.LoseAll; loss <= powercut.LosePerFile; loss++ {
		for names := powercut.LoseAll; names <= powercut.LoseSome; names++ {
			cuts = append(cuts, powercut.Cut{At: trace.Lines(), Loss: loss, Name: names, Seed: 1, Why: "the end"})
		}
	}
	return cuts
}
