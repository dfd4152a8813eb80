package identity

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ledgerd/ledgerd/internal/testenv"
)

func TestPatternMatch(t *testing.T) {
	ci := DN{"ci", "build", "acme"}

	tests := []struct {
		pattern string
		dn      DN
		want    bool
	}{
		{"cn=ci,ou=build,o=acme", ci, true},
		{"cn=ci", ci, true},
		{"o=acme", ci, true},
		{"cn=*,ou=build,o=acme", ci, true},
		{"o=acme,cn=*", ci, true},
		{"cn=cd", ci, false},
		{"cn=ci,o=other", ci, false},
		{"cn=CI", ci, false},
		{"cn=c", ci, false},
		{"cn=i", ci, false},
		{"cn=c*", ci, true},
		{"cn=*i", ci, true},
		{"cn=c*i", ci, true},
		{"cn=ci*", ci, true},
		{"cn=*ci*", ci, true},
		{"cn=c*c", DN{CN: "c"}, false},
		{"cn=ab*ab", DN{CN: "abab"}, true},
		{"cn=ab*ab", DN{CN: "ab"}, false},
		{"cn=*a*b*c*", DN{CN: "xaxbxcx"}, true},
		{"cn=*a*b*c*", DN{CN: "cba"}, false},
		{"cn=*ab*b*", DN{CN: "aabb"}, true},
		{"ou=*", DN{CN: "ci"}, true},
		{"ou=build*", DN{CN: "ci"}, false},
		{`cn=\*`, DN{CN: "*"}, true},
		{`cn=\2a`, DN{CN: "*"}, true},
		{`cn=\*`, ci, false},
		{`cn=a\**`, DN{CN: "a*b"}, true},
		{`cn=a\**`, DN{CN: "ab"}, false},
		{`cn=Doe\, *`, DN{CN: "Doe, Jane"}, true},
	}

	for _, test := range tests {
		p, err := ParsePattern(test.pattern)
		if err != nil {
			t.Errorf("%s: %v", test.pattern, err)
			continue
		}
		if got := p.Match(test.dn); got != test.want {
			t.Errorf("%s matches %q: %v, want %v", test.pattern, test.dn, got, test.want)
		}
	}
	if !(Pattern{}).Match(ci) {
		t.Error("the zero pattern does not match every DN")
	}
}

func TestPatternText(t *testing.T) {
	for text, want := range map[string]string{
		"O=acme,CN=*":    "cn=*,o=acme",
		"cn=***a**":      "cn=*a*",
		`cn=\2A`:         `cn=\2a`,
		`cn=\*`:          `cn=\2a`,
		`ou=\ *\ `:       `ou=\ *\ `,
		`ou=\ a\ *\ a\ `: `ou=\ a * a\ `,
		`o=\#*#`:         `o=\#*#`,
		`o=a\,*`:         `o=a\,*`,
	} {
		var p Pattern
		if err := p.UnmarshalText([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := p.String(); got != want {
			t.Errorf("%s formats as %s, want %s", text, got, want)
		}
	}

	for text, reason := range map[string]string{
		"":                                  "no =",
		"*":                                 "no =",
		"ci":                                "no =",
		"cn=":                               "no value",
		"cn=a,cn=b":                         "twice",
		"dc=*":                              "unknown attribute",
		`cn=\z`:                             "not an escape",
		`cn=\c3*\a9`:                        "UTF-8",
		"cn=*" + strings.Repeat("x", 256):   "longer than",
		"cn=" + strings.Repeat("*a", 130):   "longer than",
		"cn=ci,ou=build,o=acme,c=*":         "unknown attribute",
		"cn=ci;ou=build":                    "unescaped ;",
		"cn=*," + strings.Repeat(" ", 4000): "too long",
	} {
		var p Pattern
		if err := p.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%q parses as %s, %v; want error with %q", text, p, err, reason)
		}
	}
}

// A pattern matches the same values as the equivalent regular expression.
func TestPatternAgainstRegexp(t *testing.T) {
	testenv.Check(t, func(t *rapid.T) {
		letters := rapid.StringOfN(rapid.SampledFrom([]rune("ab*")), 1, 8, -1)
		pattern := letters.Draw(t, "pattern")
		value := rapid.StringOfN(rapid.SampledFrom([]rune("ab")), 1, 12, -1).Draw(t, "value")
		p := must(ParsePattern("cn=" + pattern))
		want := regexp.MustCompile("^" + strings.ReplaceAll(pattern, "*", ".*") + "$").MatchString(value)
		if got := p.Match(DN{CN: value}); got != want {
			t.Fatalf("%s matches %s: %v, want %v", p, value, got, want)
		}
		if again := must(ParsePattern(p.String())); again.Match(DN{CN: value}) != want || again.String() != p.String() {
			t.Fatalf("%s is another pattern after formatting and parsing", p)
		}
	})
}

// The text of a DN, with stars escaped, is a pattern that matches that DN.
func TestPatternOfDN(t *testing.T) {
	testenv.Check(t, func(t *rapid.T) {
		d, other := drawDN(t), drawDN(t)
		p, err := ParsePattern(strings.ReplaceAll(d.String(), "*", `\*`))
		if err != nil {
			t.Fatal(err)
		}
		if !p.Match(d) {
			t.Fatalf("%s does not match %q", p, d)
		}
		matches := func(pattern, value string) bool { return pattern == "" || pattern == value }
		want := d.CN == other.CN && matches(d.OU, other.OU) && matches(d.O, other.O)
		if p.Match(other) != want {
			t.Fatalf("%s matches %q: %v", p, other, !want)
		}
		if back := must(ParsePattern(p.String())); back.String() != p.String() || !back.Match(d) {
			t.Fatalf("%s parses again as %s", p, back)
		}
	})
}

// FuzzParsePattern checks that String and ParsePattern round-trip, and that Match
// terminates.
func FuzzParsePattern(f *testing.F) {
	f.Add("cn=*,ou=build*,o=acme", "ci")
	f.Add(`cn=\2a*\*`, "**")
	f.Add(`ou=\ *\ `, "  ")
	f.Add("cn=*a*b*a*", "abba")
	f.Fuzz(func(t *testing.T, text, value string) {
		p, err := ParsePattern(text)
		if err != nil {
			return
		}
		back, err := ParsePattern(p.String())
		if err != nil || back.String() != p.String() {
			t.Fatalf("%q formats as %s, which parses as %s, %v", text, p, back, err)
		}
		d := DN{CN: value, OU: value, O: value}
		if p.Match(d) != back.Match(d) {
			t.Fatalf("%s matches %q differently after formatting and parsing", p, value)
		}
	})
}
