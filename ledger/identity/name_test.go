package identity

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
)

func TestFoldName(t *testing.T) {
	for name, want := range map[string]string{
		"ann":                    "ann",
		"Ann  Smith":             "annsmith",
		"<Ann@ACME.org>":         "ann@acme.org",
		"dependabot[bot]":        "dependabotbot",
		"\tann\u00a0smith\u3000": "annsmith",
		"\uff21\uff4e\uff4e":     "ann",
		"Stra\u00dfe":            "strasse",
		"\u212aim":               "kim",
		" ":                      "",

		// Addresses.
		"eve+work@acme.example":         "eve@acme.example",
		"Eve+a+b@ACME.example":          "eve@acme.example",
		"+eve@acme.example":             "+eve@acme.example",
		"+@acme.example":                "+@acme.example",
		"cn+dev":                        "cn+dev",
		"\uff25ve+x@acme.example":       "eve@acme.example",
		"eve@noreply.acme.example+x":    "acme.example+x:eve",
		"noreply@github.com":            "noreply@github.com",
		"@users.noreply.github.com":     "@users.noreply.github.com",
		"eve@users.noreply.":            "eve@users.noreply",
		"users.noreply.github.com":      "users.noreply.github.com",
		"eve@xusers.noreply.github.com": "eve@xusers.noreply.github.com",

		"eve@acme.example.":                "eve@acme.example",
		"eve@users.noreply.github.com.":    "github:eve",
		"eve@acme\u3002example":            "eve@acme.example",
		"eve@acme\uff61example":            "eve@acme.example",
		`"eve"@acme.example`:               "eve@acme.example",
		"mailto:Eve+x@acme.example":        "eve@acme.example",
		"<mailto:eve@acme.example>":        "eve@acme.example",
		"[eve@acme.example]":               "eve@acme.example",
		"[1+eve@users.noreply.github.com]": "github:eve",
		"e[v]e@acme.example":               "eve@acme.example",
		"Team: Eve [x]":                    "team:evex",
		"eve@xn--bcher-kva.example":        "eve@xn--bcher-kva.example",

		// No-reply addresses of forges.
		"123+Eve@users.noreply.github.com":                  "github:eve",
		"eve@users.noreply.github.com":                      "github:eve",
		"123+eve+work@users.noreply.github.com":             "github:eve",
		"eve+work@users.noreply.github.com":                 "github:eve",
		"123-eve@users.noreply.github.com":                  "github:123-eve",
		"12a+eve@users.noreply.github.com":                  "github:12a",
		"49699333+dependabot[bot]@users.noreply.github.com": "github:dependabot[bot]",
		"123+eve@users.noreply.acme.ghe.com":                "acme.ghe.com:eve",
		"123-eve@users.noreply.gitlab.com":                  "gitlab:eve",
		"123@users.noreply.gitlab.com":                      "gitlab:123",
		"123-eve-x@users.noreply.git.acme.example":          "git.acme.example:eve-x",
		"eve@noreply.codeberg.org":                          "codeberg:eve",
		"1-eve@noreply.git.acme.example":                    "git.acme.example:1-eve",

		// Logins.
		"github:Eve":                "github:eve",
		"github:dependabot[bot]":    "github:dependabot[bot]",
		"gitlab.acme.example:eve.x": "gitlab.acme.example:eve.x",

		// Nobody.
		"-":      "",
		"<->":    "",
		"- @ -":  "",
		"\u2013": "\u2013",
	} {
		if got := FoldName(name); got != want {
			t.Errorf("%q folds to %q, want %q", name, got, want)
		}
	}
}

// Authors are also compared by other forms of what they have.
func TestAuthorNames(t *testing.T) {
	for email, want := range map[string][]string{
		"eve@acme.example":          {"eve@acme.example"},
		"eve@xn--bcher-kva.example": {"eve@xn--bcher-kva.example", "eve@b\u00fccher.example"},
		"Eve@B\u00dccher.example":   {"eve@b\u00fccher.example", "eve@xn--bcher-kva.example"},
		"@Eve": {"@eve", "eve", "github:eve", "gitlab:eve", "codeberg:eve", "gitea:eve",
			"bitbucket:eve"},
		"@acme team": {"@acmeteam", "acmeteam", "github:acmeteam", "gitlab:acmeteam", "codeberg:acmeteam",
			"gitea:acmeteam", "bitbucket:acmeteam"},
		"@eve/x": {"@eve/x"},
		"":       {},
	} {
		if got := AuthorNames([]ledger.Author{{Email: email}}); !slices.Equal(got, want) {
			t.Errorf("%q has the names %q, want %q", email, got, want)
		}
	}
}

// The fast way for ASCII has the same result as the one for all characters.
func TestFoldNameOfASCII(t *testing.T) {
	testenv.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[ -~\t]{0,20}`).Draw(t, "name")
		if got, want := foldText(name), strings.TrimSuffix(foldText(name+"\u00e9"), "\u00e9"); got != want {
			t.Errorf("%q folds to %q, want %q", name, got, want)
		}
	})
}
