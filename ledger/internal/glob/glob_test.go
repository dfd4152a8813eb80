package glob

import (
	"testing"

	"github.com/bmatcuk/doublestar/v4"
	"pgregory.net/rapid"

	"github.com/ledgerd/ledgerd/internal/testenv"
)

// AnyMatch gives the same result as doublestar: a Shape excludes only names that do not
// match.
func TestAnyMatch(t *testing.T) {
	globs := rapid.StringMatching(`([abé/]|\*|\*\*/|/\*\*|\?|\[ab\]|\[!a\]|\[\\\]{}b\]|\{a,b/\}|\{\*\*/,\}|\\\*){1,8}`)
	names := rapid.StringMatching(`[abé]{1,3}(/[abé*]{1,3}){0,3}`)
	testenv.Check(t, func(t *rapid.T) {
		glob := globs.Draw(t, "glob")
		if !doublestar.ValidatePattern(glob) {
			t.Skip()
		}
		for range 50 {
			name := names.Draw(t, "name")
			want := doublestar.MatchUnvalidated(glob, name)
			if got, sure := AnyMatch([]string{glob}, []string{name}, 1<<20); got != want || !sure {
				t.Fatalf("got %t, sure %t; want %t", got, sure, want)
			}
		}
	})
}

// What a prefix, a suffix or a part excludes costs little.
func TestMayMatch(t *testing.T) {
	const glob = "services/*/x*.go"
	for name, want := range map[string]struct {
		may   bool
		steps int
	}{
		"docs/a/x.go":        {false, 1},
		"services/a/x.md":    {false, 1},
		"services/abcd/y.go": {false, 1 + 18/4},
		"services/a/x.go":    {true, 1 + 15/4 + 9*8}, // after services: 8 bytes of the glob, 7 of the name
	} {
		shape := ShapeOf(glob)
		if may, steps := shape.MayMatch(name); may != want.may || steps != want.steps {
			t.Errorf("%s: %t in %d steps, want %+v", name, may, steps, want)
		}
	}
}

func TestGlobLimits(t *testing.T) {
	for glob, want := range map[string][2]int{ // runs of *, alternatives
		"cmd/**":             {1, 1},
		"**/*.go":            {2, 1},
		"***a*":              {2, 1},
		"*.{go,mod}":         {1, 2},
		"{a,b,c}/{d,e}":      {0, 6},
		"{a,{b,c}}":          {0, 4}, // an upper bound: there are three
		`release-\*`:         {1, 1},
		"{a,b}{a,b}{a,b}*{}": {1, 8},
	} {
		if got := [2]int{stars(glob), alternatives(glob)}; got != want {
			t.Errorf("%s: got %v, want %v", glob, got, want)
		}
	}
}

func TestMiddleLiteral(t *testing.T) {
	for glob, want := range map[string]string{
		"cmd/main.go": "", "cmd/*/main.go": "", "a/*bcd?efgh": "bcd", "?x{abc,d}yz*": "yz", "{a{b,c}def,g}h?": "h",
		"**/x/**":      "/x/",
		`[^x\]long]c*`: "c", `a\*bc*`: "*bc", "**": "", "": "",
	} {
		if got := middleLiteral(glob); got != want {
			t.Errorf("%s: got %q, want %q", glob, got, want)
		}
	}
}
