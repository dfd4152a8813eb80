package identity

import (
	"testing"

	"github.com/ledgerd/ledgerd/internal/testenv"
)

func TestOverlaps(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"cn=ci", "cn=ci", true},
		{"cn=ci", "cn=cd", false},
		{"cn=ci", "ou=build", true},
		{"cn=ci*", "cn=*build", true},
		{"cn=ci*", "cn=cd*", false},
		{"cn=c*", "cn=ci*", true},
		{"cn=*x", "cn=*yx", true},
		{"cn=*x", "cn=*y", false},
		{"cn=a*b*c", "cn=ac", false},
		{"cn=a*b*c", "cn=abc", true},
		{"cn=a*b*c", "cn=a*d*c", true},
		{"cn=*,ou=build,o=acme", "o=acme", true},
		{"cn=*,ou=build,o=acme", "o=globex", false},
		{"cn=ci,ou=build", "cn=ci,ou=deploy", false},
	} {
		a, b := mustPattern(t, test.a), mustPattern(t, test.b)
		if a.Overlaps(b) != test.want || b.Overlaps(a) != test.want {
			t.Errorf("%s and %s: not %t", test.a, test.b, test.want)
		}
		if !a.Overlaps(Pattern{}) || !(Pattern{}).Overlaps(a) {
			t.Errorf("%s does not overlap the pattern of all", test.a)
		}
	}
}

// TestOverlapsAgreesWithMatch compares Overlaps with all values of up to six letters.
func TestOverlapsAgreesWithMatch(t *testing.T) {
	var values []string
	for length := 1; length <= 6; length++ {
		for n := range 1 << length {
			value := make([]byte, length)
			for i := range value {
				value[i] = "ab"[n>>i&1]
			}
			values = append(values, string(value))
		}
	}

	r := testenv.Rand(t)
	random := func() Pattern {
		text := []byte("cn=")
		for range 1 + r.IntN(3) {
			text = append(text, "ab*"[r.IntN(3)])
		}
		return mustPattern(t, string(text))
	}
	for range 2000 {
		a, b := random(), random()
		both := false
		for _, value := range values {
			both = both || a.Match(DN{CN: value}) && b.Match(DN{CN: value})
		}
		if a.Overlaps(b) != both {
			t.Errorf("%s and %s: %t, want %t", a, b, !both, both)
		}
	}
}

func mustPattern(t *testing.T, text string) Pattern {
	t.Helper()
	p, err := ParsePattern(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
