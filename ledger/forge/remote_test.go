package forge_test

import (
	"testing"

	"github.com/ledgerd/ledgerd/ledger/forge"
)

func TestOfRemote(t *testing.T) {
	for remote, want := range map[string]string{
		"https://github.com/acme/api.git":               "https://github.com/acme/api",
		"https://ada:secret@github.com/acme/api":        "https://github.com/acme/api",
		"https://GitHub.com/acme/api/":                  "https://github.com/acme/api",
		"http://git.example:3000/acme/api.git/":         "http://git.example:3000/acme/api",
		"https://[::1]:3000/acme/api":                   "https://[::1]:3000/acme/api",
		"https://acme@dev.azure.com/acme/A%20b/_git/ui": "https://dev.azure.com/acme/A%20b/_git/ui",
		"git@github.com:acme/api.git":                   "https://github.com/acme/api",
		"gitlab.example:group/sub/api.git":              "https://gitlab.example/group/sub/api",
		"host:/srv/acme/api.git":                        "https://host/srv/acme/api",
		"ssh://git@git.example:2222/acme/api":           "https://git.example/acme/api",
		"ssh://git.example/acme/api":                    "https://git.example/acme/api",
		"git://git.example/acme/api.git":                "https://git.example/acme/api",
		"https://github.com/acme/api?token=x#y":         "https://github.com/acme/api",
		"javascript:alert(1)":                           "https://javascript/alert(1)",

		"/srv/git/acme/api.git":             "",
		"../api":                            "",
		"api":                               "",
		"":                                  "",
		`C:\src\api`:                        "",
		"file:///srv/acme/api.git":          "",
		"file://host/acme/api.git":          "",
		"javascript://host/%0aalert(1)":     "",
		"https://github.com":                "",
		"https://x y/":                      "",
		"https://github.com/acme/../evil":   "",
		"git@github.com:../evil":            "",
		"git@host name:acme/api":            "",
		"https://evil.example\\@github.com": "",
	} {
		if got := forge.OfRemote(remote); got != want {
			t.Errorf("%q: %q, want %q", remote, got, want)
		}
	}
}
