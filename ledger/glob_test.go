package ledger

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
	"pgregory.net/rapid"
)

// What anyMatches passes over without a look, could not have matched.
func TestGlobShapeIsOfEveryMatch(t *testing.T) {
	globs := rapid.StringMatching(`([abé/]|\*|\*\*/|/\*\*|\?|\[ab\]|\[!a\]|\[\\\]{}b\]|\{a,b/\}|\{\*\*/,\}|\\\*){1,8}`)
	names := rapid.StringMatching(`[abé]{1,3}(/[abé*]{1,3}){0,3}`)
	rapid.Check(t, func(t *rapid.T) {
		glob := globs.Draw(t, "glob")
		if !doublestar.ValidatePattern(glob) {
			t.Skip()
		}
		for range 50 {
			name := names.Draw(t, "name")
			want := doublestar.MatchUnvalidated(glob, name)
			if got, sure := anyMatches([]string{glob}, []string{name}, 1<<20); got != want || !sure {
				t.Fatalf("got %t, sure %t; want %t", got, sure, want)
			}
		}
	})
}

func TestGlobLimits(t *testing.T) {
	for glob, want := range map[string][2]int{ // runs of *, alternatives
		"cmd/**":             {1, 1},
		"**/*.go":            {2, 1},
		"***a*":              {2, 1},
		"*.{go,mod}":         {1, 2},
		"{a,b,c}/{d,e}":      {0, 6},
		"{a,{b,c}}":          {0, 4}, // at least the three that there are
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
		"cmd/main.go": "", "cmd/*/main.go": "", "a/*bcd?efgh": "bcd", "?x{abc,d}yz*": "yz", "{a{b,c}def,g}h?": "h", "**/x/**": "/x/",
		`[^x\]long]c*`: "c", `a\*bc*`: "*bc", "**": "", "": "",
	} {
		if got := middleLiteral(glob); got != want {
			t.Errorf("%s: got %q, want %q", glob, got, want)
		}
	}
}

// The worst that an org's admin and its writers can do together: as many globs
// as a contract may have, and as many and long paths as a commit may change.
func BenchmarkDeriveWorst(b *testing.B) {
	deep := strings.Repeat("a/", 900)
	for name, test := range map[string]struct{ glob, path string }{
		"usual":        {"services/team-%02d/**", "services/web/internal/handlers/%04d_handler.go"},
		"in between":   {"services/*/team-%02d/*.go", "services/web/internal/handlers/%04d_handler.go"},
		"one star":     {"*" + strings.Repeat("a", 120) + "[b%02d]*", strings.Repeat("a", 1800) + "/%04d"},
		"part":         {"*" + strings.Repeat("a", 15) + "b%02d*", strings.Repeat("a", 150) + "/%04d"},
		"parts":        {"*" + strings.Repeat("ab", 7) + "ac%02d*", strings.Repeat("ab", 900) + "/%04d"},
		"stars":        {"*a*a*a*a*a*a" + strings.Repeat("a", 100) + "[b%02d]*", strings.Repeat("a", 1800) + "/%04d"},
		"folders":      {"**/a/**/a/**/a/**/%02db*", deep + "%04d"},
		"any":          {"*" + strings.Repeat("?", 120) + "%02d/*", strings.Repeat("a", 1800) + "%04d"},
		"braces":       {"**/*{a,b,c,d}{a,b,c,d}%02db*", deep + "%04d"},
		"late braces":  {"*" + strings.Repeat("a", 60) + "{aa,ab,ac,ad}{a,b,c,d}%02db*", strings.Repeat("a", 1800) + "%04d"},
		"classes":      {"*" + strings.Repeat("[!b-z]", 40) + "%02db*", strings.Repeat("a", 1800) + "%04d"},
		"in folders":   {"**/team-%02d/**", "services/web/internal/handlers/%04d_handler.go"},
		"long":         {"**/a%02db/**", strings.Repeat("a", 1800) + "%04d"},
		"short":        {"*a%02db*", strings.Repeat("a", 40) + "%04d"},
		"few are left": {"*{a,b}%02d*", strings.Repeat("a", 40) + "%04d"},
	} {
		b.Run(name, func(b *testing.B) {
			var globs []string
			for i := range maxGlobs {
				globs = append(globs, fmt.Sprintf("%q", fmt.Sprintf(test.glob, i)))
			}
			c := mustParse(b, `{"state":"ATTESTED","predicate":"x","paths":[`+strings.Join(globs, ",")+`]}`)
			f := attested()
			f.HasChanges = true
			for i := range maxMatched {
				f.Changes = append(f.Changes, fmt.Sprintf(test.path, i))
			}
			for b.Loop() {
				c.Derive(f, policyNow)
			}
			b.Log(c.Derive(f, policyNow).Requirements[0].Reason)
		})
	}
	b.Run("branches", func(b *testing.B) {
		var globs []string
		for i := range maxGlobs {
			globs = append(globs, fmt.Sprintf("%q", "*"+strings.Repeat("a", 120)+"{a,b,c,d}{a,b,c,d}"+fmt.Sprint(i)))
		}
		c := mustParse(b, `{"state":"ATTESTED","predicate":"x","branches":[`+strings.Join(globs, ",")+`]}`)
		f := attested()
		f.Target = strings.Repeat("a", maxRefLen)
		for b.Loop() {
			c.Derive(f, policyNow)
		}
	})
}
