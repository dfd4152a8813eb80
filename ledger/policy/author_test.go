package policy

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
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
	} {
		if got := FoldName(name); got != want {
			t.Errorf("%q folds to %q, want %q", name, got, want)
		}
	}
}

// The fast way for ASCII has the same result as the one for all characters.
func TestFoldNameOfASCII(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[ -~\t]{0,20}`).Draw(t, "name")
		if got, want := FoldName(name), strings.TrimSuffix(FoldName(name+"\u00e9"), "\u00e9"); got != want {
			t.Errorf("%q folds to %q, want %q", name, got, want)
		}
	})
}
