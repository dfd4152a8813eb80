package contexts

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
)

func TestCanonical(t *testing.T) {
	for text, want := range map[string]string{
		"https://Ledger.Example":         "https://ledger.example",
		"https://ledger.example:443/":    "https://ledger.example",
		"http://ledger.example:80/base/": "http://ledger.example/base",
		"https://ledger.example:80":      "https://ledger.example:80",
		"http://[::1]:8080":              "http://[::1]:8080",
		"http://[::1]":                   "http://[::1]",
		"HTTPS://ledger.example":         "https://ledger.example",
		"https://ada@ledger.example":     "",
		"https://ledger.example?a=b":     "",
		"https://ledger.example#a":       "",
		"ledger.example":                 "",
		"ftp://ledger.example":           "",
		"":                               "",
	} {
		if got, err := Canonical(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestForServer(t *testing.T) {
	const one, two = "https://one.example", "https://two.example"
	l := List{Current: "a", Contexts: []Context{
		{Name: "a", Server: one, Org: "acme"}, {Name: "b", Server: one, Org: "globex"}, {Name: "c", Server: two, Org: "acme"},
		{Name: "d", Server: two, Org: "globex"},
	}}
	for name, test := range map[string]struct{ server, org, want string }{
		"the current one":         {one, "", "a"},
		"the current one's org":   {one, "acme", "a"},
		"another org":             {one, "globex", "b"},
		"an org without context":  {two, "acme", "c"},
		"another form of the URL": {"HTTPS://ONE.example:443/", "", "a"},
		"another path":            {one + "/ledger", "", ""},
		"another scheme":          {"http://one.example", "", ""},
		"another host":            {"https://one.example.evil", "", ""},
		"an invalid one":          {"https://ada@one.example", "", ""},
	} {
		c, ok, err := l.ForServer(test.server, test.org)
		if err != nil || c.Name != test.want || ok != (test.want != "") {
			t.Errorf("%s: %q, %v, %v, want %q", name, c.Name, ok, err, test.want)
		}
	}
	if _, _, err := l.ForServer(two, ""); err == nil {
		t.Error("two contexts of a server: no error")
	}
}

func TestFileIsPrivateAndBounded(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", folder)
	t.Setenv("HOME", folder)
	path, err := Path()
	must.OK(t, err)
	if l, err := Load(); err != nil || len(l.Contexts) != 0 {
		t.Fatalf("without a file: %+v, %v", l, err)
	}

	var l List
	for i := range MaxContexts {
		c := Context{Name: fmt.Sprint(i), Server: "https://ledger.example", Org: "acme", TokenID: "tok_x", Token: "ldg_x"}
		must.OK(t, l.Put(c))
	}
	if err := l.Put(Context{Name: "more", Server: "https://ledger.example"}); err == nil {
		t.Error("one context more than possible: no error")
	}
	l.Current = "7"
	must.OK(t, l.Save())
	back, err := Load()
	if err != nil || len(back.Contexts) != MaxContexts || back.Current != "7" || back.Contexts[7] != l.Contexts[7] {
		t.Fatalf("read back %d contexts, current %q: %v", len(back.Contexts), back.Current, err)
	}
	if names, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(names) > 0 {
		t.Errorf("temporary files remain: %q", names)
	}

	if runtime.GOOS != "windows" {
		for file, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s has mode %v, want %v (%v)", file, info.Mode().Perm(), want, err)
			}
		}
		for _, mode := range []os.FileMode{0o640, 0o604, 0o620} {
			must.OK(t, os.Chmod(path, mode))
			if _, err := Load(); err == nil {
				t.Errorf("mode %o is accepted", mode)
			}
		}
		must.OK(t, os.Chmod(path, 0o600))
	}

	for name, text := range map[string]string{
		"a field":          "token: ldg_secret\n",
		"a password":       "contexts: [{name: a, server: 'https://ada:ldg_secret@x', token: ldg_secret}]\n",
		"no token":         "contexts: [{name: a, server: 'https://x'}]\n",
		"two of a name":    strings.Repeat("- {name: a, server: 'https://x', token: ldg_secret}\n", 2),
		"no current":       "current: ldg_secret\n",
		"type":             "contexts: ldg_secret\n",
		"too much":         "#" + strings.Repeat("x", maxBytes),
		"control in names": "contexts: [{name: \"a\\n\", server: 'https://x', token: ldg_secret}]\n",
	} {
		if strings.HasPrefix(text, "- ") {
			text = "contexts:\n" + text
		}
		must.OK(t, os.WriteFile(path, []byte(text), 0o600))
		if _, err := Load(); err == nil || strings.Contains(err.Error(), "ldg_secret") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
