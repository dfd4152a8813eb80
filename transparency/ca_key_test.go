package transparency

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/hex"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/ca"
)

// newCA creates the key of a CA, and a certificate for it.
func newCA(t *testing.T, keys *Keys, serial *big.Int) *x509.Certificate {
	t.Helper()
	key, err := keys.NewCAKey(ca.SerialText(serial))
	must.OK(t, err)
	must.OK(t, keys.SaveCAKey(ca.SerialText(serial), key))
	return must.Get(ca.NewRoot(ca.Jobs, "acme", serial, key, 1))(t)
}

func TestKeyOfACAIsAFileOrDerived(t *testing.T) {
	folder := t.TempDir()
	must.OK(t, os.Chmod(folder, 0o700))
	mounted := newKeyDir(t, testSeed)
	must.OK(t, os.Chmod(mounted, 0o500)) // as a folder that is only read
	for name, folders := range map[string][2]string{
		"file": {folder, folder}, "seed": {mounted, filepath.Join(t.TempDir(), "state")},
	} {
		t.Run(name, func(t *testing.T) {
			keys := must.Get(OpenKeys(folders[0], folders[1]))(t)
			serial := ca.NewSerial()
			cert := newCA(t, keys, serial)
			again := must.Get(OpenKeys(folders[0], folders[1]))(t)
			key, err := again.LoadCAKey(cert)
			if err != nil || !key.PublicKey.Equal(cert.PublicKey) {
				t.Errorf("another key: %v", err)
			}

			info, err := os.Stat(filepath.Join(folders[0], "ca-"+ca.SerialText(serial)+".key"))
			if name == "seed" && !os.IsNotExist(err) {
				t.Errorf("with a seed, there is a file too: %v", err)
			}
			if name == "file" && (err != nil || enforcesModes && info.Mode() != 0o600) {
				t.Errorf("the file is %v, %v", info, err)
			}
		})
	}
}

// Keys that are derived must never change, or no CA can go on.
func TestDerivedKeyOfACAIsFixed(t *testing.T) {
	keys := must.Get(OpenKeys(newKeyDir(t, testSeed), t.TempDir()+"/state"))(t)
	for serial, want := range map[string]string{
		"80000000000000000000000000000001": "0455ce373934495f62738b73ef0c5d3bcac9489219b0a4960e3ab753591a847206",
		"80000000000000000000000000000002": "047dfb9b875e384aa3333db59a1ba099fad2118fd569d5911f7e1b7284fdaa370a",
	} {
		key, err := keys.NewCAKey(serial)
		must.OK(t, err)
		if got := publicHex(t, key); got != want {
			t.Errorf("the CA %s has the key %s, want %s", serial, got, want)
		}
	}
}

func publicHex(t *testing.T, key *ecdsa.PrivateKey) string {
	t.Helper()
	point, err := key.PublicKey.Bytes()
	must.OK(t, err)
	return hex.EncodeToString(point[:33])
}

// Keys of CAs that were created before there was a seed stay in use.
func TestFileOfACAComesBeforeTheSeed(t *testing.T) {
	folder := newKeyDir(t, testSeed)
	must.OK(t, os.Rename(filepath.Join(folder, seedFile), filepath.Join(folder, "later")))
	keys, err := OpenKeys(folder, folder)
	must.OK(t, err)
	cert := newCA(t, keys, ca.NewSerial())
	must.OK(t, os.Rename(filepath.Join(folder, "later"), filepath.Join(folder, seedFile)))
	if keys, err = OpenKeys(folder, folder); err == nil {
		_, err = keys.LoadCAKey(cert)
	}
	must.OK(t, err)
}

func TestKeysOfCAsAreRefused(t *testing.T) {
	folder := t.TempDir()
	must.OK(t, os.Chmod(folder, 0o700))
	keys := must.Get(OpenKeys(folder, folder))(t)
	cert, other := newCA(t, keys, ca.NewSerial()), newCA(t, keys, ca.NewSerial())
	file := keys.caFile(ca.SerialText(cert.SerialNumber))
	wantRefused := func(keys *Keys, want string) {
		t.Helper()
		if _, err := keys.LoadCAKey(cert); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}

	must.OK(t, os.Rename(keys.caFile(ca.SerialText(other.SerialNumber)), file))
	wantRefused(keys, "is not the key of the CA acme CI CA")
	must.OK(t, os.WriteFile(file, []byte("no key"), 0o600))
	wantRefused(keys, "not one private key in PEM")
	must.OK(t, os.Remove(file))
	wantRefused(keys, "no such file")

	seeded := must.Get(OpenKeys(newKeyDir(t, testSeed), folder))(t)
	wantRefused(seeded, "what the seed in log.key_dir gives is not the key of the CA")
	if enforcesModes {
		must.OK(t, os.WriteFile(seeded.caFile(ca.SerialText(cert.SerialNumber)), nil, 0o644))
		wantRefused(seeded, "others have access")
	}
}

func TestKeyOfACANeedsAPlace(t *testing.T) {
	folder := t.TempDir()
	must.OK(t, os.Chmod(folder, 0o700))
	keys := must.Get(OpenKeys(folder, folder))(t)
	must.OK(t, os.Mkdir(keys.caFile("80"), 0o700)) // so that no file can have its name
	key, err := keys.NewCAKey("80")
	must.OK(t, err)
	if err := keys.SaveCAKey("80", key); err == nil || !strings.Contains(err.Error(), "ledgerd log new-seed") {
		t.Errorf("got %v, want what to do", err)
	}
}
