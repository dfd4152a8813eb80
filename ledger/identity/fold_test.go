package identity

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/ledgerd/ledgerd/internal/testenv"
)

func TestFold(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"cn=ann,ou=web,o=acme", "cn=ann,ou=web,o=acme"},
		{"CN=Ann ,O=ACME,OU=Web", "cn=ann,ou=web,o=acme"},
		{`cn=\ Ann\ `, "cn=ann"},
		{"cn=Ann  \u00a0 Lee", "cn=ann lee"},
		{"cn=Ann\u00a0Lee", "cn=ann lee"},
		{"cn=\u3000Ann\tLee\u2028", "cn=ann lee"},
		{"cn=Ａｎｎ", "cn=ann"},
		{"cn=Ａ，Ｂ", `cn=a\,b`},
		{"cn=＃1", `cn=\#1`},
		{"cn=Straße", "cn=strasse"},
		{"cn=STRASSE", "cn=strasse"},
		{"cn=STRA\u1e9eE", "cn=strasse"},
		{"cn=\u212aim", "cn=kim"},
		{"cn=I", "cn=i"},
		{"cn=ı", "cn=ı"},
		{"cn=İ", "cn=i\u0307"},
		{"cn=ΌΣΟΣ", "cn=όσοσ"},
		{"cn=όσος", "cn=όσοσ"},
		{"cn=Zoe\u0308", "cn=zoë"},
		{"cn=ZOË", "cn=zoë"},
		{"cn=ﬁn", "cn=fin"},
		{"cn=²", "cn=2"},
		{`cn=\ ,ou=\c2\a0`, `cn=\ ,ou=\ `},
		{"cn=¨", "cn=\u0308"}, // a space and a combining mark
	} {
		d := must(ParseDN(test.text))
		if got := d.Fold(); got != test.want {
			t.Errorf("%q folds to %q, want %q", test.text, got, test.want)
		}
	}

	if got := (DN{}).Fold(); got != "" {
		t.Errorf("the empty DN folds to %q", got)
	}
}

// Folding is idempotent for each character, alone and next to characters that it may
// combine with. Unicode has no letters after lastLetter.
func TestFoldCharacters(t *testing.T) {
	const lastLetter = 0x32400
	for r := range rune(lastLetter) {
		if !utf8.ValidRune(r) {
			continue
		}
		for _, text := range []string{string(r), "a" + string(r), string(r) + "\u0345", "\u0345" + string(r) + "\u0301"} {
			once := foldValue(text)
			if twice := foldValue(once); twice != once {
				t.Errorf("%+q folds to %+q, and that to %+q", text, once, twice)
			}
		}
	}
}

// Folding is idempotent, also after formatting and parsing.
func TestFoldIsIdempotent(t *testing.T) {
	mark := rapid.SampledFrom([]rune("\u0300\u0301\u0307\u0308\u0315\u0327\u0338\u0345\u034f\u093c\u3099"))
	base := rapid.SampledFrom([]rune("aAiIİıßẞKſςΣΐᾳᾼﷺﬁ ¨´\u00a0\u200d\u2028\uac00\u11a8"))
	value := rapid.OneOf(drawValue(1), rapid.StringOfN(rapid.OneOf(base, mark), 1, 100, maxAttribute),
		rapid.StringOfN(rapid.OneOf(rapid.Rune(), mark), 1, 100, maxAttribute)).Filter(utf8.ValidString)

	testenv.Check(t, func(t *rapid.T) {
		d := DN{CN: value.Draw(t, "cn"), OU: value.Draw(t, "ou"), O: drawValue(0).Draw(t, "o")}
		once := d.folded()
		if twice := once.folded(); twice != once {
			t.Fatalf("%+q folds to %+q, and that to %+q", d, once, twice)
		}
		if max(len(once.CN), len(once.OU), len(once.O)) > maxAttribute {
			return
		}
		back, err := ParseDN(d.Fold())
		if err != nil || back != once || back.Fold() != d.Fold() {
			t.Fatalf("%+q folds to %+q, which parses as %+q, %v", d, d.Fold(), back, err)
		}
		spaced := DN{CN: " " + strings.ReplaceAll(d.CN, " ", "\u00a0 ") + "\t", OU: d.OU, O: d.O}
		if spaced.Fold() != d.Fold() {
			t.Fatalf("%+q folds to %+q, and with more white space to %+q", d, d.Fold(), spaced.Fold())
		}
	})
}
