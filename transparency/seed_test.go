package transparency

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/ledgerd/ledgerd/internal/must"
)

// testSeed is a seed of the bytes 0 to 31.
const testSeed = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"

// newKeyDir returns a folder of keys with a seed.
func newKeyDir(t *testing.T, seed string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "keys")
	must.OK(t, os.Mkdir(folder, 0o700))
	must.OK(t, os.WriteFile(filepath.Join(folder, seedFile), []byte(seed), 0o600))
	return folder
}

// Keys that are derived must never change, or no log that is signed with one can go on.
func TestDerivedKeysAreFixed(t *testing.T) {
	keys := must.Get(OpenKeys(newKeyDir(t, testSeed), t.TempDir()+"/state"))(t)
	for origin, want := range map[string]string{
		origin:                           "a67e641f+AYV/35jfWOIHIwXCDS76K65Rb1q6iHduIew/s3+xyzqn",
		origin + "/2":                    "77c1134a+AU5LbjrB763zKcu5d78EQwoHjMb2SVDFe59zsswQiwTM",
		"other.example/v1/orgs/acme/log": "d2dbf7e4+Af73rtY5veQ2JMN/FF9ezbGZ3GsyiWm/1WxsWP3t+Wdi",
	} {
		key, err := keys.Load(LogName{"acme", 1}, origin)
		must.OK(t, err)
		if key.VKey != origin+"+"+want || key.Name() != origin {
			t.Errorf("%s has the key %s, want %s", origin, key.VKey, want)
		}
	}
}

// With a seed, logs are signed and replaced without a new file next to it.
func TestLogsWithASeed(t *testing.T) {
	keys := newKeyDir(t, testSeed)
	f := newFixture(t)
	f.reopen(func() { f.keys = keys })
	must.OK(t, os.Chmod(keys, 0o755)) // as the folder of a mounted secret may be
	for range 2 {
		f.grow(2)
		f.sign(false)
		f.wantSigned()
		f.reopen(func() { f.base = "https://elsewhere.example" })
	}
	f.reopen(func() { f.base = "https://ledger.example.com/base" })
	want := f.log().Checkpoint
	b, err := f.begin(NewEpoch{Force: true})
	must.OK(t, err)
	f.wantBegun(b, "2", want)

	entries, err := os.ReadDir(keys)
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder of the keys has %v, %v", entries, err)
	}
}

// A ledger that gets a seed keeps the keys that its logs have.
func TestKeyFileTakesPrecedenceOverTheSeed(t *testing.T) {
	f := newFixture(t)
	f.grow(1)
	f.sign(false)
	vkey := f.log().VKey
	f.reopen(func() { f.keys = newKeyDir(t, testSeed) })
	f.wantRefused("the seed in log.key_dir is not the one of the log")
	must.OK(t, os.WriteFile(filepath.Join(f.keys, "acme.1.key"), f.file("acme.1.key"), 0o600))
	f.grow(1)
	f.sign(false)
	f.wantSigned()
	if l := f.log(); l.VKey != vkey {
		t.Errorf("the key %s became %s", vkey, l.VKey)
	}
}

// A log that was signed with another database keeps the name of its checkpoint, also if
// base_url is another one. It is not signed again.
func TestSeedNextToANewDatabase(t *testing.T) {
	f := newFixture(t)
	f.reopen(func() { f.keys = newKeyDir(t, testSeed) })
	f.grow(30)
	f.sign(false)
	f.wantSigned()
	second := newFixture(t)
	second.folder, second.keys, second.base = f.folder, f.keys, "https://elsewhere.example"
	second.reopen(func() {})
	second.wantRefused("it is older than the log")
	if l := second.log(); l.Origin != origin {
		t.Errorf("the log became %s", l.Origin)
	}
}

// A log that has a name keeps it, whatever is on disk.
func TestSeedNextToAForeignCheckpoint(t *testing.T) {
	f, other := newFixture(t), newFixture(t)
	for _, r := range []*fixture{f, other} {
		r.reopen(func() { r.keys = newKeyDir(t, testSeed) })
	}
	other.reopen(func() { other.base = "https://elsewhere.example" })
	for _, r := range []*fixture{f, other} {
		r.grow(1)
		r.sign(false)
	}
	f.write("acme.1.checkpoint", other.file("acme.1.checkpoint"))
	f.wantRefused("read the last checkpoint")
}

func TestSeedIsRefused(t *testing.T) {
	for seed, want := range map[string]string{
		"":                                       "is damaged: want 32 bytes in base64 on one line",
		"AAECAw==\n":                             "is damaged",
		testSeed[:42] + "\n":                     "is damaged",
		testSeed[:20] + "\n" + testSeed[20:]:     "is damaged",
		testSeed + testSeed:                      "is damaged",
		"# a comment\n" + testSeed:               "is damaged",
		strings.Replace(testSeed, "8=", "9=", 1): "is damaged",
	} {
		folder := newKeyDir(t, seed)
		_, err := OpenKeys(folder, folder)
		if err == nil || !strings.Contains(err.Error(), filepath.Join(folder, "seed")+" "+want) ||
			!strings.Contains(err.Error(), "run 'ledgerd log new-seed'") {
			t.Errorf("%q: %v, want %s", seed, err, want)
		}
	}
	folder := newKeyDir(t, testSeed)
	must.OK(t, os.Remove(filepath.Join(folder, "seed")))
	must.OK(t, os.Symlink("missing", filepath.Join(folder, "seed")))
	if _, err := OpenKeys(folder, folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a dangling link: %v", err)
	}
	if _, err := HasSeed(filepath.Join(folder, "none")); err == nil || !strings.Contains(err.Error(), "log new-seed") {
		t.Errorf("a missing folder: %v", err)
	}
}

func TestCreateSeed(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "keys")
	name, err := CreateSeed(folder)
	must.OK(t, err)
	first := must.Read(t, name)
	if has, err := HasSeed(folder); !has || err != nil {
		t.Errorf("HasSeed = %v, %v", has, err)
	}
	if info, err := os.Stat(name); err != nil || enforcesModes && info.Mode() != 0o600 {
		t.Errorf("the seed has mode %v, %v", info.Mode(), err)
	}

	if _, err := CreateSeed(folder); err == nil || !strings.Contains(err.Error(), "exists: the keys of logs") {
		t.Errorf("again: %v", err)
	}
	if again, err := os.ReadFile(name); err != nil || string(again) != string(first) {
		t.Errorf("the seed was replaced: %v", err)
	}
	must.OK(t, os.Remove(name))
	_, err = CreateSeed(folder)
	must.OK(t, err)
	if again, err := os.ReadFile(name); err != nil || string(again) == string(first) {
		t.Errorf("another seed is the same: %v", err)
	}
	must.OK(t, os.Chmod(folder, 0o755))
	must.OK(t, os.Remove(name))
	if _, err := CreateSeed(folder); enforcesModes && (err == nil || !strings.Contains(err.Error(), "chmod 700")) {
		t.Errorf("a folder that others read: %v", err)
	}
}

// Files with secrets are for the user of the server. Those of root may be readable by a group, as
// mounted secrets are.
func TestModesOfSecrets(t *testing.T) {
	for _, test := range []struct {
		mode           os.FileMode
		isOwn, isRoots bool
		want           string // empty if it is accepted
	}{
		{0o600, true, false, ""}, {0o400, true, true, ""}, {0o700, true, false, ""},
		{0o640, true, true, "chmod 600"}, {0o440, true, false, "chmod 400"}, {0o604, true, false, "chmod 600"},
		{0o640, false, true, ""}, {0o440, false, true, ""},
		{0o660, false, true, "chmod 640"}, {0o450, false, true, "chmod 440"}, {0o444, false, true, "chmod 440"},
		{0o600, false, false, "belongs to another user"},
		{os.ModeDir | 0o700, true, false, "is not a file"},
	} {
		err := checkMode("seed", test.mode, test.isOwn, test.isRoots)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("mode %v, %v, %v: %v, want %q", test.mode, test.isOwn, test.isRoots, err, test.want)
		}
	}
}

// In a folder that others may read, no file with a secret may be open to them.
func TestSecretsInAMountedFolder(t *testing.T) {
	if !enforcesModes {
		t.Skip("needs modes")
	}
	for _, name := range []string{"seed", "acme.1.key"} {
		keys, state := newKeyDir(t, testSeed), filepath.Join(t.TempDir(), "state")
		must.OK(t, os.Chmod(keys, 0o755))
		opened, err := OpenKeys(keys, state)
		must.OK(t, err)
		_, err = opened.Create(LogName{"acme", 1}, origin)
		must.OK(t, err)
		must.OK(t, os.Chmod(filepath.Join(keys, name), 0o604))
		if opened, err = OpenKeys(keys, state); err == nil {
			_, err = opened.Load(LogName{"acme", 1}, origin)
		}
		if err == nil || !strings.Contains(err.Error(), "others have access to "+filepath.Join(keys, name)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The folder of the keys may be read-only if the state has another one.
func TestReadOnlyFolders(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs a folder to which nobody can write")
	}
	const readOnly = "/proc/self/fd" // of mode 0500, and not even root can write to it
	state := filepath.Join(t.TempDir(), "state")
	keys := must.Get(OpenKeys(readOnly, state))(t)
	if _, err := keys.Create(LogName{"acme", 1}, origin); err == nil ||
		!strings.Contains(err.Error(), "make log.key_dir writable, or create a seed in it") {
		t.Errorf("a new key: %v", err)
	}
	if _, err := OpenKeys(readOnly, readOnly); err == nil ||
		!strings.Contains(err.Error(), "log.key_dir cannot be written to") ||
		!strings.Contains(err.Error(), "set log.state_dir") {
		t.Errorf("one folder: %v", err)
	}
	if _, err := OpenKeys(state, readOnly); err == nil ||
		!strings.Contains(err.Error(), "log.state_dir cannot be written to") {
		t.Errorf("a state folder: %v", err)
	}

	// Neither is made up if it is missing, or open to others.
	if _, err := OpenKeys(filepath.Join(state, "none"), state); !errors.Is(err, fs.ErrNotExist) ||
		!strings.Contains(err.Error(), "log.key_dir") {
		t.Errorf("no folder of keys: %v", err)
	}
	must.OK(t, os.Chmod(state, 0o750))
	if _, err := OpenKeys(readOnly, state); err == nil || !strings.Contains(err.Error(), "log.state_dir") {
		t.Errorf("a state folder that others read: %v", err)
	}
}
