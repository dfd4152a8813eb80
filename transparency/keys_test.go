package transparency

import (
	"bytes"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// Each org has its own key, in files that only the owner can read.
func TestKeysOfOrgs(t *testing.T) {
	f := newFixture(t)
	_, err := f.store.CreateOrg(t.Context(), "umbrella")
	must.OK(t, err)
	_, err = f.store.CreateRepo(t.Context(), "umbrella", ledger.NewRepo{Name: "api"}, "host")
	must.OK(t, err)
	contract, err := policy.Parse([]byte(`{"requirements":[]}`))
	must.OK(t, err)
	_, err = f.store.SetPolicy(t.Context(), "umbrella", "api", contract, 0, "host")
	must.OK(t, err)
	f.grow(1)
	f.sign(false)

	other, err := f.store.Log(t.Context(), "umbrella", 0)
	must.OK(t, err)
	if l := f.log(); l.Origin != origin || other.Origin != strings.Replace(origin, "acme", "umbrella", 1) ||
		strings.SplitN(l.VKey, "+", 3)[2] == strings.SplitN(other.VKey, "+", 3)[2] {
		t.Errorf("got keys %s and %s", l.VKey, other.VKey)
	}
	if !enforcesModes {
		return
	}
	for name, want := range map[string]os.FileMode{"": os.ModeDir | 0o700, "acme.1.key": 0o600, "acme.1.checkpoint": 0o600,
		"umbrella.1.key": 0o600, "umbrella.1.checkpoint": 0o600} {
		info := must.Get(os.Stat(filepath.Join(f.folder, name)))(t)
		if info.Mode() != want {
			t.Errorf("%q has mode %v, want %v", name, info.Mode(), want)
		}
	}
}

func TestFolderOfKeysIsRefused(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	must.OK(t, os.WriteFile(file, nil, 0o600))
	for name, want := range map[string]string{file: "is not a folder", filepath.Join(file, "keys"): "not a directory",
		filepath.Join(folder, "none", "keys"): "create log.key_dir"} {
		if _, err := OpenKeys(name, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	for _, mode := range []os.FileMode{0o740, 0o710, 0o704, 0o701, 0o755} {
		must.OK(t, os.Chmod(folder, mode))
		if _, err := OpenKeys(folder, folder); enforcesModes && (err == nil || !strings.Contains(err.Error(), "chmod 700")) {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
}

// The name of a log is fixed when it begins, whatever base_url is later.
func TestOriginIsFixed(t *testing.T) {
	f := newFixture(t)
	f.grow(1)
	f.sign(false)
	vkey := f.log().VKey
	for _, base := range []string{"https://elsewhere.example", "https://ledger.example.com/"} {
		f.reopen(func() { f.base = base })
		f.grow(1)
		f.sign(false)
		f.wantSigned()
		if l := f.log(); l.Origin != origin || l.VKey != vkey {
			t.Errorf("the log became %s, %s", l.Origin, l.VKey)
		}
	}
	if entries, err := os.ReadDir(f.folder); err != nil || len(entries) != 2 {
		t.Errorf("got %v, %v", entries, err)
	}
}

func TestOrigins(t *testing.T) {
	for base, want := range map[string]string{
		"https://ledger.example":          "ledger.example/v1/orgs/acme/log",
		"http://ledger.example:8080/":     "ledger.example:8080/v1/orgs/acme/log",
		"https://ledger.example/a%20b/c/": "ledger.example/a%20b/c/v1/orgs/acme/log",
	} {
		u := must.Get(url.Parse(base))(t)
		for epoch, suffix := range map[int]string{1: "", 2: "/2", 17: "/17"} {
			if got := Origin(u, LogName{"acme", epoch}); got != want+suffix {
				t.Errorf("%s, epoch %d: got %s", base, epoch, got)
			}
		}
	}
}

// Nothing is signed without the key of the log. When it is back, signing goes on.
func TestMissingAndForeignKeys(t *testing.T) {
	other := newFixture(t)
	other.grow(1)
	other.sign(false)
	elsewhere := newFixture(t)
	elsewhere.base = "https://elsewhere.example"
	elsewhere.reopen(func() {})
	elsewhere.grow(1)
	elsewhere.sign(false)

	f := newFixture(t)
	f.grow(2)
	f.sign(false)
	f.wantSigned()
	key := f.file("acme.1.key")
	for _, test := range []struct {
		key    []byte
		reason string
	}{
		{nil, "its key is missing in log.key_dir"},
		{other.file("acme.1.key"), "is not the one of the log"},
		{elsewhere.file("acme.1.key"), "is not the one of the log"},
		{[]byte("PRIVATE+KEY+nonsense\n"), "read the key of the log"},
		{bytes.Replace(key, []byte("PRIVATE"), []byte("PUBLIC"), 1), "read the key of the log"},
		{key[:len(key)-3], "read the key of the log"},
	} {
		must.OK(t, os.Remove(filepath.Join(f.folder, "acme.1.key")))
		if test.key != nil {
			f.write("acme.1.key", test.key)
		}
		f.wantRefused(test.reason)
		f.write("acme.1.key", key)
		f.sign(true)
		f.wantSigned()
		if !strings.Contains(f.output.String(), "signed again") {
			t.Errorf("logged:\n%s", f.output)
		}
	}
}
