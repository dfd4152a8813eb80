package gitrepo

import "testing"

func TestParseRemote(t *testing.T) {
	for text, want := range map[string]Remote{
		"https://github.com/acme/api.git":        {"acme", "api"},
		"https://ada:secret@github.com/acme/api": {"acme", "api"},
		"http://git.example:3000/acme/api.git/":  {"acme", "api"},
		"git@github.com:acme/api.git":            {"acme", "api"},
		"gitlab.example:group/sub/api.git":       {"sub", "api"},
		"ssh://git@git.example:2222/acme/api":    {"acme", "api"},
		"/srv/git/acme/api.git":                  {"acme", "api"},
		"../api":                                 {"..", "api"},
		"api":                                    {"", "api"},
		"file:///srv/acme/api.git":               {"acme", "api"},
		"":                                       {},
	} {
		if got := ParseRemote(text); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}
