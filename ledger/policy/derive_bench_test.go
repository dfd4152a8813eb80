package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/glob"
)

// The worst case: the maximum number of globs in a contract, and the maximum number of
// long paths in a change record.
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
			for i := range glob.MaxGlobs {
				globs = append(globs, fmt.Sprintf("%q", fmt.Sprintf(test.glob, i)))
			}
			c := mustParse(b, `{"state":"ATTESTED","predicate":"x","paths":[`+strings.Join(globs, ",")+`]}`)
			f := attested()
			var paths []string
			for i := range glob.MaxMatched {
				paths = append(paths, fmt.Sprintf(test.path, i))
			}
			signChanges(&f, paths...)
			for b.Loop() {
				c.Derive(f, policyNow)
			}
			b.Log(c.Derive(f, policyNow).Requirements[0].Reason)
		})
	}
	b.Run("branches", func(b *testing.B) {
		var globs []string
		for i := range glob.MaxGlobs {
			globs = append(globs, fmt.Sprintf("%q", "*"+strings.Repeat("a", 120)+"{a,b,c,d}{a,b,c,d}"+fmt.Sprint(i)))
		}
		c := mustParse(b, `{"state":"ATTESTED","predicate":"x","branches":[`+strings.Join(globs, ",")+`]}`)
		f := attested()
		f.Targets = []string{strings.Repeat("a", 255)}
		for b.Loop() {
			c.Derive(f, policyNow)
		}
	})
}

func BenchmarkDerive(b *testing.B) {
	c, f := usualContract(b), usualFacts()
	b.ReportAllocs()
	for b.Loop() {
		if c.Derive(f, policyNow).State != ledger.Deployed {
			b.Fatal("not DEPLOYED")
		}
	}
}

func BenchmarkState(b *testing.B) {
	c, f := usualContract(b), usualFacts()
	b.ReportAllocs()
	for b.Loop() {
		if state, _ := c.State(f, policyNow); state != ledger.Deployed {
			b.Fatal("not DEPLOYED")
		}
	}
}

func usualContract(b *testing.B) Contract {
	return mustParse(b,
		`{"state":"ATTESTED","predicate":"test:*","signers":["cn=*,ou=build,o=acme"],"max_age":"168h"}`,
		`{"state":"PROMOTABLE","predicate":"review:*","threshold":2,"exclude_author":true,"branches":["main","release/*"]}`,
		`{"state":"DEPLOYED","predicate":"deploy:prod","signers":["ou=platform,o=acme"]}`)
}

func usualFacts() Facts {
	return attested(signed(ci, "test:go", ledger.Pass), signed(ci, "test:js", ledger.Pass),
		signed(bob, "review:code", ledger.Pass),
		signed(carol, "review:code", ledger.Pass), signed(ops, "deploy:prod", ledger.Pass))
}
